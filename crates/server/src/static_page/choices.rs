//! Filters that a page without a server may choose: those of findings, processes, threads, and the
//! largest functions of user code. Other filters need the events, which the page does not contain.

use std::time::{Duration, Instant};

use heapr_table::SortRows as _;
use serde_json::{Value, json};

use super::recorder::Recorder;
use super::tables::tables;
use crate::choices::TEMPORARY_BYTES;
use crate::error::Result;

/// Largest number of choices of each kind.
const OF_KIND_MAX: usize = 5;
/// Time after which no further choice is begun: each takes its time for a long recording.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Number of rows per table.
const ROWS: usize = 200;
/// Begin of the titles of functions.
const FUNCTION: &str = "stacks with ";

pub(super) fn record(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if !recorder.begin(&format!("filters of file {file}")) {
        return Ok(());
    }
    let begun = Instant::now();
    for (title, filter) in choices(recorder, file)? {
        if recorder.has_sums(file) && is_of_sums(&filter) {
            of_blocks(recorder, file, &filter, &title)?;
            recorder.add_choice(&title, file, &filter);
        } else if begun.elapsed() > TIME_MAX {
            recorder.leave_out(&format!("{title} in file {file}"));
        } else if one(recorder, file, &filter)? {
            recorder.add_choice(&title, file, &filter);
        }
    }
    Ok(())
}

fn choices(recorder: &mut Recorder<'_>, file: usize) -> Result<Vec<(String, Value)>> {
    // These answers are recorded already.
    let findings = recorder.findings(file)?;
    let mut found = of_findings(&findings);
    let body = json!({"file": file, "sort": "peak", "limit": 500});
    let functions = recorder.read("functions", body)?.unwrap_or_default();
    let own = list(&functions, "functions").filter(|row| row["is_own"] == true);
    for frame in own.map(|row| &row["frame"]).take(OF_KIND_MAX) {
        let Some(symbol) = frame["symbol"].as_str() else { continue };
        let module = frame["module"].as_str().map(heapr_query::file_name);
        let pattern = module.map_or_else(|| symbol.to_owned(), |module| format!("{module}!{symbol}"));
        found.push((format!("{FUNCTION}{symbol}"), json!({"require_frames": [pattern]})));
    }
    let body = json!({"file": file, "by": "stacks", "sort": "so", "limit": 500, "frames_max": 12});
    let report = recorder.read("report", body)?.unwrap_or_default();
    let mut processes: Vec<&Value> = list(&report, "heaps").collect();
    processes.sort_rows_by_key(|heap| std::cmp::Reverse(heap["peak_bytes"].as_u64()));
    processes.dedup_by_key(|heap| heap["pid"].as_u64());
    for heap in processes.iter().take(OF_KIND_MAX).filter(|_| processes.len() > 1) {
        let pid = heap["pid"].as_u64().unwrap_or(0).to_string();
        let title = format!("process {} ({pid})", heap["process"].as_str().unwrap_or(""));
        found.push((title, json!({"pid": [pid]})));
    }
    let body = json!({"file": file, "by": "by-thread", "sort": "so", "limit": 500, "frames_max": 12});
    let threads = recorder.read("report", body)?.unwrap_or_default();
    let threads: Vec<&Value> = list(&threads, "groups").map(|group| &group["thread"]).collect();
    for thread in threads.iter().take(OF_KIND_MAX).filter(|_| threads.len() > 1) {
        let Some(tid) = thread["tid"].as_u64() else { continue };
        let title = format!("thread {} {tid}", thread["name"].as_str().unwrap_or(""));
        found.push((title, json!({"thread": [tid.to_string()]})));
    }
    found.push(("temporary allocations".to_owned(), json!({"temporary": true})));
    Ok(found)
}

/// Choices of the findings' buttons.
fn of_findings(findings: &Value) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = Vec::new();
    for finding in list(findings, "findings") {
        let Some(mut filter) = finding["chosen"].as_object().cloned() else { continue };
        filter.remove("sort");
        let filter = Value::Object(filter);
        let is_known = filter == json!({"at": "peak"}) || found.iter().any(|(_, known)| *known == filter);
        if filter == json!({}) || is_known {
            continue;
        }
        let kind = finding["kind"].as_str().unwrap_or_default();
        let symbol = finding["own_frame"]["symbol"].as_str();
        let name = symbol.or(finding["own_frame"]["module"].as_str()).unwrap_or_default();
        found.push((format!("{kind}: {name}"), filter));
    }
    found
}

fn list<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer[name].as_array().into_iter().flatten()
}

/// Whether the sums by time answer the tables, flame graphs and the timeline of a filter.
fn is_of_sums(filter: &Value) -> bool {
    filter.as_object().is_some_and(|filter| filter.keys().all(|name| name == "require_frames"))
}

/// Records the answers of a filter that need each block: those of findings alone.
fn of_blocks(recorder: &mut Recorder<'_>, file: usize, filter: &Value, title: &str) -> Result<()> {
    if title.starts_with(FUNCTION) {
        return Ok(());
    }
    leaks(recorder, file, filter)?;
    recorder.record("histograms", json!({"file": file, "filter": filter}))?;
    recorder.record("types", json!({"file": file, "filter": filter})).map(drop)
}

/// Records leaks, which are of the end: a moment and temporary allocations choose none of them, and
/// the page leaves these out.
fn leaks(recorder: &mut Recorder<'_>, file: usize, filter: &Value) -> Result<()> {
    let mut filter = filter.clone();
    if let Some(fields) = filter.as_object_mut() {
        fields.retain(|name, _| !["at", "temporary", "type", "snapshot"].contains(&name.as_str()));
        if fields.is_empty() {
            return Ok(());
        }
    }
    let work_end_ns = recorder.findings(file)?["work_end_ns"].as_u64();
    for hides in [true, false] {
        let mut leaks = json!({"file": file, "filter": filter, "limit": ROWS});
        leaks["filter"]["hide_known"] = hides.into();
        recorder.record("leaks", leaks.clone())?;
        if let Some(end_ns) = work_end_ns {
            leaks["filter"]["range"] = json!(["0", format!("{end_ns}ns")]);
            recorder.record("leaks", leaks)?;
        }
    }
    Ok(())
}

/// Records all answers of a filter. Returns whether all had room.
fn one(recorder: &mut Recorder<'_>, file: usize, filter: &Value) -> Result<bool> {
    let with = |more: Value| {
        let mut body = json!({"file": file, "filter": filter});
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body
    };
    tables(recorder, &|more| {
        let mut body = with(more);
        body["limit"] = ROWS.into();
        body
    })?;
    leaks(recorder, file, filter)?;
    recorder.record("histograms", with(json!({})))?;
    recorder.record("types", with(json!({})))?;
    for value in ["outstanding_bytes", "peak_bytes", "total_bytes", TEMPORARY_BYTES] {
        let flame =
            json!({"value": value, "direction": "top-down", "collapse_recursion": false, "nodes_max": 4000});
        recorder.record("flame", with(flame))?;
    }
    // The timeline shows the whole time, whatever moment is chosen.
    let timeline = |by: &str| {
        let mut body = with(json!({"by": by, "value": "bytes", "bins": 600}));
        if let Some(filter) = body["filter"].as_object_mut() {
            filter.remove("at");
        }
        body
    };
    recorder.record("timeline", timeline("none"))?;
    recorder.record("timeline", timeline("image"))
}
