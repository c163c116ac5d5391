//! Memory over time.

use heapr_explore::{SeriesKey, TimelineBy, TimelineOf, TimelineQuery};
use heapr_filters::FilterArguments;
use heapr_query::{FrameView, Span, file_name};
use heapr_trace::{BlockEstimate, Course, Estimate};
use serde::Serialize;
use serde_json::{Value, json};

use super::resident_bands::ResidentBands;
use super::timeline_intervals::{TimelineIntervals, halves};
use super::timeline_request::{SeriesValue, TimelineRequest};
use super::trace_facts::Marker;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::ids::{frame_id, stack_id};
use crate::json::{PeakBlocks, is_counted};
use crate::request::{Answer, Context, read};
use crate::trace_file::TraceFile;

const BINS_MAX: usize = 20_000;
const SERIES_MAX: usize = 50;

/// A native snapshot on the time axis.
#[derive(Serialize)]
struct SnapshotMark {
    time_ns: u64,
    number: u32,
    name: String,
    trigger: String,
    block_bytes: u64,
    block_count: u64,
    /// Half of the 95 % interval of `block_bytes`; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    block_bytes_plus_minus: u64,
    pids: Vec<u32>,
}

/// The resident memory of a process.
#[derive(Serialize)]
struct RssSeries {
    pid: Option<u32>,
    time_ns: Vec<u64>,
    rss_bytes: Vec<u64>,
}

/// Largest amount of live memory.
#[derive(Serialize)]
struct TimelinePeak {
    time_ns: u64,
    #[serde(flatten)]
    blocks: PeakBlocks,
}

impl TimelinePeak {
    fn of((time_ns, bytes, count): (u64, u64, u64), (of_bytes, of_count): (u64, u64)) -> Self {
        let (bytes, count) = (Estimate::new(bytes, of_bytes), Estimate::new(count, of_count));
        Self { time_ns, blocks: BlockEstimate { bytes, count }.into() }
    }
}

#[derive(Serialize)]
struct TimelineSeries {
    name: String,
    filter: Value,
    id: Option<String>,
    values: Vec<u64>,
    /// Halves of the 95 % intervals of `values`, if they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values_plus_minus: Vec<u64>,
}

#[derive(Serialize)]
struct TimelineAnswer {
    schema: &'static str,
    /// Reason why the course is missing.
    note: Option<&'static str>,
    from_ns: u64,
    to_ns: u64,
    bins: usize,
    live_bytes: Vec<u64>,
    live_count: Vec<u64>,
    most_bytes: Vec<u64>,
    alloc_bytes: Vec<u64>,
    alloc_count: Vec<u64>,
    free_count: Vec<u64>,
    #[serde(flatten)]
    intervals: TimelineIntervals,
    series: Vec<TimelineSeries>,
    /// Sum of the resident bytes, for the value `resident`.
    resident_bytes: Vec<u64>,
    rest: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rest_plus_minus: Vec<u64>,
    rss: Vec<RssSeries>,
    markers: Vec<Marker>,
    snapshots: Vec<SnapshotMark>,
    peak: Option<TimelinePeak>,
}

pub(super) fn timeline(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: TimelineRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let (by, of) = (TimelineBy::from(request.by), TimelineOf::from(request.value));
    let time = request.time(&file)?;
    if request.bins == 0 || request.bins > BINS_MAX {
        return Err(Error::bad("bins", format!("{} bins: 1 to {BINS_MAX}", request.bins)));
    }
    let words = FilterArguments { range: None, at: None, snapshot: None, r#type: None, ..request.filter };
    let read = file.filter(&words)?;
    file.wait_for_events(context.cancel)?;
    if !matches!(by, TimelineBy::Nothing | TimelineBy::Processes | TimelineBy::Threads)
        || !read.filter.takes_all_stacks()
    {
        file.wait_for_names(context.cancel)?;
    }
    let is_resident = request.value == SeriesValue::Resident;
    let by = if is_resident { TimelineBy::Nothing } else { by };
    let pids = read.filter.pids.clone();
    let query = TimelineQuery {
        filter: read.filter,
        cull: read.cull,
        time,
        bins: request.bins,
        by,
        series_max: request.series_max.min(SERIES_MAX),
        of,
    };
    if file.explorer.is_without_events() {
        let bands = is_resident.then(|| bands_of(&file, &pids, query.time, &vec![0; query.bins], &[]));
        return without_course(context, &file, &query, bands.unwrap_or_default());
    }
    let course =
        file.explorer.timeline(&query, &|| context.cancel.is_set())?.ok_or_else(|| Error::Unusable {
            path: file.path.display().to_string(),
            message:
                "it has more events than fit into memory: the timeline cannot be drawn; export a part of it"
                    .to_owned(),
            offset: None,
        })?;
    let intervals = TimelineIntervals::of(&course);
    let variances = course.variances.unwrap_or_default();
    let rest_plus_minus = halves(of.is_bytes(), &variances.rest);
    let rest = if is_resident { vec![0; query.bins] } else { course.rest };
    let bands = is_resident
        .then(|| bands_of(&file, &pids, query.time, &course.live_bytes, &intervals.live_bytes_plus_minus));
    let (mut series, resident_bytes) = bands.unwrap_or_default();
    series.extend(course.series.into_iter().map(|series| {
        let (name, filter, id) = described(&file, series.key);
        let values_plus_minus = halves(of.is_bytes(), &series.variances);
        TimelineSeries { name, filter, id, values: series.values, values_plus_minus }
    }));
    crate::request::json(&TimelineAnswer {
        schema: "heapr.view.timeline/1",
        note: None,
        from_ns: time.from,
        to_ns: time.to,
        bins: request.bins,
        series,
        resident_bytes,
        live_bytes: course.live_bytes,
        live_count: course.live_count,
        most_bytes: course.most_bytes,
        alloc_bytes: course.alloc_bytes,
        alloc_count: course.alloc_count,
        free_count: course.free_count,
        intervals,
        rest,
        rest_plus_minus,
        rss: rss(&file, query.time, request.bins),
        markers: markers(&file, query.time),
        snapshots: snapshots(&*context.files.host, &file, query.time),
        peak: Some(TimelinePeak::of(course.peak, variances.peak)),
    })
}

/// Explains what a trace without a course still has.
fn what_is_known(file: &TraceFile) -> &'static str {
    match heapr_query::written_summary(file.trace()) {
        Ok(Some(_)) => "recorded without events (--mode snapshot): only snapshots and totals are known",
        _ => "no events and no totals can be read: only snapshots are known",
    }
}

/// Answers for a trace without events, from the other parts of the file.
fn without_course(
    context: &Context<'_>,
    file: &TraceFile,
    query: &TimelineQuery,
    (series, resident_bytes): (Vec<TimelineSeries>, Vec<u64>),
) -> Result<Answer> {
    let Span { from: from_ns, to: to_ns } = query.time;
    let none = || vec![0; query.bins];
    let course = file.trace().course().ok().flatten().filter(|course| !course.moments.is_empty());
    let live = course.as_ref().map(|course| live_of(course, query.time, query.bins));
    let (live_bytes, intervals) = live.map_or_else(Default::default, |(bytes, variances)| {
        let is_estimate = file.trace().is_sampled();
        (Some(bytes), if is_estimate { TimelineIntervals::of_live(&variances) } else { Default::default() })
    });
    crate::request::json(&TimelineAnswer {
        schema: "heapr.view.timeline/1",
        note: live_bytes.is_none().then(|| what_is_known(file)),
        from_ns,
        to_ns,
        bins: query.bins,
        series,
        resident_bytes,
        most_bytes: live_bytes.clone().unwrap_or_else(none),
        live_bytes: live_bytes.unwrap_or_else(none),
        live_count: none(),
        alloc_bytes: none(),
        alloc_count: none(),
        free_count: none(),
        intervals,
        rest: none(),
        rest_plus_minus: Vec::new(),
        rss: rss(file, query.time, query.bins),
        markers: markers(file, query.time),
        snapshots: snapshots(&*context.files.host, file, query.time),
        peak: None,
    })
}

/// Live bytes in each bin and their variance: the largest known in it, or those at the last known
/// moment before its end.
fn live_of(course: &Course, time: Span, bins: usize) -> (Vec<u64>, Vec<u64>) {
    let length = u128::from(time.to - time.from);
    let start_ns = |bin: usize| time.from + (length * bin as u128 / bins as u128) as u64;
    let mut moments = course.moments.iter().peekable();
    let mut last = (0, 0);
    let live_in = |bin: usize| {
        let end_ns = start_ns(bin + 1);
        let mut most = None;
        while let Some(moment) = moments.next_if(|moment| moment.time_ns < end_ns) {
            last = (moment.live_bytes, moment.variances.bytes_kib2);
            if moment.time_ns >= start_ns(bin) {
                most = most.max(Some(last));
            }
        }
        most.unwrap_or(last)
    };
    (0..bins).map(live_in).unzip()
}

/// Resident memory by class as series, and their sum.
fn bands_of(
    file: &TraceFile,
    pids: &[u32],
    time: Span,
    live_bytes: &[u64],
    live_plus_minus: &[u64],
) -> (Vec<TimelineSeries>, Vec<u64>) {
    let ResidentBands { bands, all_bytes } = ResidentBands::of(file.trace(), pids, time, live_bytes);
    let series = bands.into_iter().map(|band| TimelineSeries {
        name: band.name.to_owned(),
        filter: Value::Null,
        id: None,
        values: band.values,
        values_plus_minus: if band.is_by_live { live_plus_minus.to_vec() } else { Vec::new() },
    });
    (series.collect(), all_bytes)
}

fn markers(file: &TraceFile, time: Span) -> Vec<Marker> {
    let markers = file.trace().markers().iter().filter(|marker| time.contains(marker.time_ns));
    markers.map(|marker| Marker { time_ns: marker.time_ns, text: marker.text.clone() }).collect()
}

/// Native snapshots in a span of time.
fn snapshots(host: &dyn Host, file: &TraceFile, time: Span) -> Vec<SnapshotMark> {
    let trace = file.trace();
    let mark = |snapshot: &heapr_trace::Snapshot| {
        let processes = snapshot.processes.iter();
        let known = processes.filter_map(|process| trace.processes().get(process.process.0 as usize));
        SnapshotMark {
            time_ns: snapshot.time_ns,
            number: snapshot.number,
            name: snapshot.name.clone(),
            trigger: host.trigger(snapshot.trigger),
            block_bytes: snapshot.block_bytes,
            block_count: snapshot.block_count,
            block_bytes_plus_minus: trace.snapshot_estimate(snapshot).bytes_plus_minus(),
            pids: known.map(|process| process.pid).collect(),
        }
    };
    trace.snapshots().iter().filter(|snapshot| time.contains(snapshot.time_ns)).map(mark).collect()
}

/// Name, filter and id of a series.
fn described(file: &TraceFile, key: SeriesKey) -> (String, Value, Option<String>) {
    let (trace, explorer) = (file.trace(), &file.explorer);
    match key {
        SeriesKey::Process(number) => match trace.processes().get(number as usize) {
            Some(process) => (
                format!("{} ({})", process.name(), process.pid),
                json!({"pid": [process.pid.to_string()]}),
                None,
            ),
            None => (format!("process #{number}"), Value::Null, None),
        },
        SeriesKey::Thread(number) => match trace.threads().get(number.0 as usize) {
            Some(thread) => {
                let name = if thread.name.is_empty() { "thread" } else { &thread.name };
                (format!("{name} ({})", thread.tid), json!({"thread": [thread.tid.to_string()]}), None)
            }
            None => (format!("thread #{}", number.0), Value::Null, None),
        },
        SeriesKey::Image(frame) => {
            match frame.and_then(|frame| explorer.frame(frame)).and_then(|view| view.module) {
                Some(module) => {
                    let name = file_name(module);
                    (name.to_owned(), json!({"innermost_frames": [format!("{name}!")]}), None)
                }
                None => ("(no module)".to_owned(), Value::Null, None),
            }
        }
        SeriesKey::Frame(frame) => match frame.and_then(|frame| Some((frame, explorer.frame(frame)?))) {
            Some((frame, view)) => {
                let module = view.module.map(file_name);
                let name = match (view.symbol, module) {
                    (Some(symbol), _) => symbol.to_owned(),
                    (None, Some(module)) if view.offset == 0 => module.to_owned(),
                    (None, module) => format!("{}+{:#x}", module.unwrap_or_default(), view.offset),
                };
                let pattern = view.symbol.map(|symbol| format!("{}!{symbol}", module.unwrap_or_default()));
                (
                    name,
                    pattern.map_or(Value::Null, |pattern| json!({"innermost_frames": [pattern]})),
                    Some(frame_id(frame)),
                )
            }
            None => ("(no stack)".to_owned(), Value::Null, None),
        },
        SeriesKey::Stack(key) => {
            let (frames, removed) = explorer.stack_frames(key).unwrap_or_default();
            let views: Vec<FrameView<'_>> = frames.iter().skip(removed).map(|(_, view)| *view).collect();
            let name = |at: usize| views.get(at).and_then(|view| view.symbol.or(view.module)).unwrap_or("?");
            let text = match (file.own.place(&views), views.len()) {
                (_, 0) => "(no stack)".to_owned(),
                (Some(own @ 1..), _) => format!("{} through {}", name(own), name(0)),
                (_, 1) => name(0).to_owned(),
                _ => format!("{} ← {}", name(0), name(1)),
            };
            (text, Value::Null, Some(stack_id(key)))
        }
    }
}

/// Resident samples of each process, at most two per bin: the least and the largest.
fn rss(file: &TraceFile, time: Span, bins: usize) -> Vec<RssSeries> {
    let mut by_process: std::collections::BTreeMap<u32, Vec<(u64, u64)>> = std::collections::BTreeMap::new();
    let trace = file.trace();
    let short = trace.rss_samples().iter().map(|sample| (sample.process, sample.time_ns, sample.rss_bytes));
    // A recorder with much to do takes one kind of sample and not the other.
    let long = trace.resident_samples().iter();
    let long = long.map(|sample| (sample.process, sample.time_ns, sample.rss_bytes()));
    for (process, time_ns, rss_bytes) in short.chain(long).filter(|(_, time_ns, _)| time.contains(*time_ns)) {
        by_process.entry(process.0).or_default().push((time_ns, rss_bytes));
    }
    let width = (u128::from(time.to - time.from) / bins as u128).max(1);
    by_process
        .into_iter()
        .map(|(process, mut samples)| {
            samples.sort_unstable();
            let bin = |sample: &(u64, u64)| u128::from(sample.0 - time.from) / width;
            let mut thinned: Vec<(u64, u64)> = Vec::new();
            for samples in samples.chunk_by(|a, b| bin(a) == bin(b)) {
                let least = samples.iter().min_by_key(|sample| sample.1);
                let most = samples.iter().max_by_key(|sample| sample.1);
                let mut both: Vec<(u64, u64)> = least.into_iter().chain(most).copied().collect();
                both.sort_unstable();
                both.dedup();
                thinned.extend(both);
            }
            let pid = file.trace().processes().get(process as usize).map(|process| process.pid);
            let (time_ns, rss_bytes) = thinned.into_iter().unzip();
            RssSeries { pid, time_ns, rss_bytes }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use heapr_trace::{CourseMoment, LiveVariances};

    use super::*;

    #[test]
    fn a_course_without_events_is_drawn_from_moment_to_moment() {
        let moment = |time_ns, live_bytes| CourseMoment {
            time_ns,
            live_bytes,
            variances: LiveVariances { bytes_kib2: 10 * live_bytes, count: 0 },
            ..CourseMoment::default()
        };
        let course = Course { moments: vec![moment(0, 1), moment(25, 9), moment(29, 4), moment(70, 6)] };
        let (bytes, variances) = live_of(&course, Span { from: 0, to: 100 }, 10);
        assert_eq!(bytes, [1, 1, 9, 4, 4, 4, 4, 6, 6, 6]);
        assert_eq!(variances, bytes.iter().map(|bytes| 10 * bytes).collect::<Vec<_>>());
        assert_eq!(live_of(&course, Span { from: 30, to: 80 }, 5).0, [4, 4, 4, 4, 6]);
    }
}
