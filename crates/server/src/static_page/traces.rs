//! Recorded answers about traces, the most important first.

use std::time::{Duration, Instant};

use heapr_query::Metric;
use heapr_trace::Snapshot;
use serde_json::{Value, json};

use super::recorder::Recorder;
use super::tables::{tables, with};
use crate::choices::TEMPORARY_BYTES;
use crate::entry::Content;
use crate::error::Result;
use crate::trace_file::TraceFile;

/// Number of rounds of recording: the first views, common views, the rest.
pub(super) const STEPS: usize = 3;

/// Number of rows per table.
const ROWS: usize = 500;
/// Number of stacks that are recorded in full, and of frames with their callers.
const STACKS: usize = 200;
const FRAMES: usize = 100;
/// Time for recording functions with their callers, for each order.
const FUNCTIONS_TIME_MAX: Duration = Duration::from_secs(1);
/// Largest number of native snapshots between the two of a comparison.
const BETWEEN: usize = 60;
/// Number of native snapshots whose contents are recorded.
const SNAPSHOTS: usize = 12;
/// Number of the last snapshots with references whose holders and leaks are recorded: each is read
/// anew.
const GRAPHS: usize = 2;

/// Values of flame graphs.
fn values() -> impl Iterator<Item = &'static str> {
    Metric::all().map(Metric::name).chain([TEMPORARY_BYTES])
}

pub(super) fn record(recorder: &mut Recorder<'_>, file: usize, trace: &TraceFile, step: usize) -> Result<()> {
    match step {
        0 => first(recorder, file),
        1 => second(recorder, file, trace),
        _ => third(recorder, file),
    }
}

fn first(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if recorder.begin(&format!("timeline, tables and flame graph of file {file}")) {
        // A page that is passed on contains sources only if its author wants them.
        let source_lines = recorder.source_lines();
        let findings = recorder.read("findings", json!({"file": file, "source_lines": source_lines}))?;
        let work_end_ns = findings.and_then(|findings| findings["work_end_ns"].as_u64());
        recorder.record("where", json!({"file": file}))?;
        timeline(recorder, file, "none", "bytes")?;
        for value in ["outstanding_bytes", "peak_bytes"] {
            flame(recorder, file, value, "top-down", false)?;
        }
        tables(recorder, &|more| with(json!({"file": file, "limit": ROWS}), more))?;
        moments(recorder, file)?;
        recorder.record("types", json!({"file": file}))?;
        recorder.record("histograms", json!({"file": file}))?;
        peak(recorder, file)?;
        for hides in [true, false] {
            let leaks = |filter: Value| json!({"file": file, "filter": filter, "limit": ROWS});
            recorder.record("leaks", leaks(json!({"hide_known": hides})))?;
            if let Some(end_ns) = work_end_ns {
                let range = json!(["0", format!("{end_ns}ns")]);
                recorder.record("leaks", leaks(json!({"hide_known": hides, "range": range})))?;
            }
        }
    }
    if recorder.is_as_seen() { Ok(()) } else { super::stories::record(recorder, file) }
}

fn second(recorder: &mut Recorder<'_>, file: usize, trace: &TraceFile) -> Result<()> {
    if !recorder.is_as_seen() && recorder.begin(&format!("sums by time of file {file}")) {
        recorder.sums(file)?;
    }
    // The page computes from sums what would be recorded in any order, direction and value.
    let has_sums = !recorder.is_as_seen() && recorder.has_sums(file);
    if !recorder.is_as_seen() && recorder.begin(&format!("address space of file {file}")) {
        recorder.record("place", json!({"file": file}))?;
    }
    if recorder.begin(&format!("stacks and frames of file {file}")) {
        for (by, sort) in [("stacks", "so"), ("stacks", "peak"), ("stacks", "stc"), ("frames", "so")] {
            if has_sums && (by == "frames" || sort == "stc") {
                continue;
            }
            let Some(answer) = recorder.read("report", report_body(file, by, sort))? else { break };
            let groups = answer["groups"].as_array().into_iter().flatten();
            for id in groups.take(if by == "frames" { FRAMES } else { STACKS }).map(|group| &group["id"]) {
                if by == "frames" {
                    recorder
                        .record("frame", json!({"file": file, "frame": id, "sort": "so", "limit": 50}))?;
                } else {
                    // A page that is passed on contains no other files: a trace from elsewhere may
                    // name any.
                    let source_lines = recorder.source_lines();
                    let body = json!({"file": file, "id": id, "source_lines": source_lines});
                    recorder.record("stack", body)?;
                }
            }
        }
    }
    if !has_sums && recorder.begin(&format!("functions of file {file} with their callers")) {
        for sort in ["so", "peak"] {
            let body = json!({"file": file, "sort": sort, "limit": ROWS});
            let answer = recorder.read("functions", body)?.unwrap_or_default();
            let functions = answer["functions"].as_array().into_iter().flatten();
            let begun = Instant::now();
            // Each takes its time for a long recording.
            let has_time = |_: &&Value| begun.elapsed() < FUNCTIONS_TIME_MAX;
            for id in functions.take(FRAMES).map(|row| &row["id"]).take_while(has_time) {
                recorder.record("frame", json!({"file": file, "frame": id, "sort": sort, "limit": 50}))?;
            }
        }
    }
    if !has_sums && recorder.begin(&format!("flame graphs of file {file}")) {
        for value in values() {
            for direction in ["top-down", "bottom-up"] {
                flame(recorder, file, value, direction, false)?;
            }
        }
    }
    if recorder.begin(&format!("timelines of file {file}")) {
        for by in ["image", "thread", "process", "frame", "stack"] {
            timeline(recorder, file, by, "bytes")?;
        }
    }
    if !trace.trace().resident_samples().is_empty() {
        resident(recorder, file)?;
    }
    let numbers: Vec<u32> = trace.trace().snapshots().iter().map(|snapshot| snapshot.number).collect();
    if !numbers.is_empty() && recorder.begin(&format!("native snapshots of file {file}")) {
        native(recorder, file, &numbers)?;
    }
    if recorder.is_as_seen() { Ok(()) } else { references(recorder, file, trace) }
}

/// Records the holders and leaks of the last snapshots with references.
fn references(recorder: &mut Recorder<'_>, file: usize, trace: &TraceFile) -> Result<()> {
    let trace = trace.trace();
    let has_graph = |snapshot: &&Snapshot| !trace.graph_processes(snapshot).is_empty();
    for snapshot in trace.snapshots().iter().rev().filter(has_graph).take(GRAPHS) {
        let number = snapshot.number;
        if recorder.begin(&format!("references of snapshot {number} of file {file}")) {
            for what in ["native/holders", "native/leaks"] {
                recorder.record(what, json!({"file": file, "number": number, "limit": ROWS}))?;
            }
        }
    }
    Ok(())
}

fn third(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    let has_sums = !recorder.is_as_seen() && recorder.has_sums(file);
    if recorder.begin(&format!("tables of file {file} in other orders")) {
        let others = ["images", "frames", "stacks"].into_iter().filter(|_| !has_sums);
        for by in ["by-thread"].into_iter().chain(others) {
            for sort in Metric::sort_keys() {
                if recorder.has_all_rows("report", report_body(file, by, sort.key()))? {
                    break;
                }
            }
        }
    }
    if recorder.begin(&format!("lines of functions of file {file}")) {
        for (sort, value) in [("so", "outstanding_bytes"), ("peak", "peak_bytes")] {
            let lines = json!({"file": file, "sort": sort, "by_line": true, "limit": ROWS});
            recorder.record("functions", lines)?;
            report(recorder, file, "lines", sort)?;
            for direction in ["top-down", "bottom-up"] {
                let body = json!({"file": file, "value": value, "direction": direction, "by_line": true, "nodes_max": 10_000});
                recorder.record("flame", body)?;
            }
        }
    }
    if recorder.begin(&format!("timelines of file {file} of counts and rates")) {
        for value in ["count", "alloc_bytes", "alloc_count"] {
            for by in ["none", "image", "thread", "process", "frame", "stack"] {
                timeline(recorder, file, by, value)?;
            }
        }
        timeline(recorder, file, "none", "resident")?;
    }
    if !has_sums && recorder.begin(&format!("flame graphs of file {file} without recursion")) {
        for value in values() {
            for direction in ["top-down", "bottom-up"] {
                flame(recorder, file, value, direction, true)?;
            }
        }
    }
    Ok(())
}

/// Number of moments of resident memory that are recorded.
const RESIDENT_MOMENTS: usize = 60;

/// Records resident memory at the end and at moments.
pub(super) fn resident(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if !recorder.begin(&format!("resident memory of file {file}")) {
        return Ok(());
    }
    let of = json!({"file": file, "limit": RESIDENT_MOMENTS});
    let Some(answer) = recorder.read("resident", of)? else { return Ok(()) };
    for moment in 0..answer["rss_bytes"].as_array().map_or(0, Vec::len) {
        let of = json!({"file": file, "moment": moment, "limit": RESIDENT_MOMENTS});
        recorder.record("resident", of)?;
    }
    Ok(())
}

/// Records the comparisons of one trace's moments: start to peak, and peak to end.
fn moments(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    let at = |moment: &str| json!({"file": file, "filter": {"at": moment}});
    for (before, after) in [(at("0"), at("peak")), (at("peak"), json!({"file": file}))] {
        for by in ["stacks", "frames", "images"] {
            let body = json!({"before": before, "after": after, "by": by, "sort": "so", "limit": ROWS, "same": true});
            recorder.record("diff", body)?;
        }
        let body = json!({"before": before, "after": after, "value": "outstanding_bytes", "direction": "top-down", "nodes_max": 10_000});
        recorder.record("diff-flame", body)?;
    }
    Ok(())
}

/// Records the view behind the button of the peak.
fn peak(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    let filter = json!({"at": "peak"});
    let of_peak = json!({"file": file, "filter": filter, "limit": ROWS});
    tables(recorder, &|more| with(of_peak.clone(), more))?;
    let body = json!({"file": file, "filter": filter, "value": "outstanding_bytes", "direction": "top-down", "nodes_max": 10_000});
    recorder.record("flame", body)?;
    Ok(())
}

fn report_body(file: usize, by: &str, sort: &str) -> Value {
    json!({"file": file, "by": by, "sort": sort, "limit": ROWS, "frames_max": 12})
}

fn report(recorder: &mut Recorder<'_>, file: usize, by: &str, sort: &str) -> Result<bool> {
    recorder.record("report", report_body(file, by, sort))
}

fn flame(
    recorder: &mut Recorder<'_>,
    file: usize,
    value: &str,
    direction: &str,
    collapses: bool,
) -> Result<bool> {
    recorder.record(
        "flame",
        json!({"file": file, "value": value, "direction": direction, "collapse_recursion": collapses, "nodes_max": 10_000}),
    )
}

fn timeline(recorder: &mut Recorder<'_>, file: usize, by: &str, value: &str) -> Result<bool> {
    recorder.record("timeline", json!({"file": file, "by": by, "value": value, "bins": 1000}))
}

fn native(recorder: &mut Recorder<'_>, file: usize, numbers: &[u32]) -> Result<()> {
    // The last one is shown first. Of many the others are chosen evenly, with the first.
    let step = numbers.len().div_ceil(SNAPSHOTS).max(1);
    let mut chosen: Vec<u32> = numbers.iter().copied().step_by(step).collect();
    chosen.extend(numbers.last());
    chosen.dedup();
    for by in ["stacks", "frames", "images"] {
        recorder
            .record("native/suspects", json!({"files": [file], "by": by, "sort": "oldest", "limit": ROWS}))?;
        let [first, .., last] = numbers else { continue };
        let of = json!([{"file": file, "number": first}, {"file": file, "number": last}]);
        recorder.record("native/diff", json!({"of": of, "by": by, "sort": "change", "limit": ROWS}))?;
        // The page asks for all snapshots between at once.
        if (3..=BETWEEN + 2).contains(&numbers.len()) {
            let of: Vec<Value> =
                numbers.iter().map(|number| json!({"file": file, "number": number})).collect();
            recorder.record("native/diff", json!({"of": of, "by": by, "sort": "steady", "limit": ROWS}))?;
        }
    }
    for number in chosen.iter().rev() {
        for by in ["stacks", "frames", "images"] {
            let body = json!({"file": file, "number": number, "by": by, "sort": "bytes", "limit": ROWS});
            recorder.record("native/summary", body)?;
        }
        for value in ["bytes", "blocks"] {
            let body = json!({"file": file, "number": number, "value": value, "nodes_max": 5000});
            recorder.record("native/treemap", body)?;
        }
        recorder.record("native/statistics", json!({"file": file, "number": number}))?;
    }
    Ok(())
}

/// Largest number of files that are compared each with each; of more, each is compared with the
/// first.
pub(super) const EACH_WITH_EACH: usize = 4;

/// Pairs that are compared; each file may be the one before and the one after.
pub(super) fn pairs(files: &[usize]) -> Vec<(usize, usize)> {
    let all = files.iter().flat_map(|&before| files.iter().map(move |&after| (before, after)));
    let is_wanted = |&(before, after): &(usize, usize)| {
        before != after && (files.len() <= EACH_WITH_EACH || files.first() == Some(&before))
    };
    all.filter(is_wanted).collect()
}

/// Records comparisons of traces.
pub(super) fn record_pairs(recorder: &mut Recorder<'_>) -> Result<()> {
    let entries = recorder.files.entries();
    let is_trace = |number: &usize| matches!(entries[*number].content(), Content::Trace(_));
    let traces: Vec<usize> = (0..entries.len()).filter(is_trace).collect();
    for (first, other) in pairs(&traces) {
        if !recorder.begin(&format!("comparison of files {first} and {other}")) {
            continue;
        }
        let sides = json!({"before": {"file": first}, "after": {"file": other}});
        let with = |more: Value| with(sides.clone(), more);
        // Lists are parts of a key as they are: the page's have a filter.
        let builds = json!([{"file": first, "filter": {}}, {"file": other, "filter": {}}]);
        let body = json!({"sides": builds, "sort": "so", "limit": ROWS, "same": true});
        recorder.record("diff-functions", body)?;
        for by in ["stacks", "frames", "images"] {
            recorder.record("diff", with(json!({"by": by, "sort": "so", "limit": ROWS, "same": true})))?;
        }
        for direction in ["top-down", "bottom-up"] {
            let body = json!({"value": "outstanding_bytes", "direction": direction, "nodes_max": 10_000});
            recorder.record("diff-flame", with(body))?;
        }
    }
    Ok(())
}
