//! Threads that are started again and again, and never end.

use heapr_query::{Confidence, Owner, Trend};
use heapr_table::quantity::{bytes, count, duration};
use heapr_trace::{PartKind, Process, ProcessIndex, StackIndex, Trace};

use crate::finding::{Finding, Kind, OwnFrame, quoted};
use crate::recording::Recording;

/// Smallest number of threads that are live at the end, for a finding.
const LIVE_MIN: usize = 32;
/// Number of equal parts of a process's time at whose ends threads are counted.
const MOMENTS: u64 = 24;
/// Smallest share of the threads that were started in the last third of the time, and largest share
/// that was started in one part.
const LATE_MIN: f64 = 0.15;
const STEP_MAX: f64 = 0.5;
/// Smallest time of a process that is judged, in nanoseconds. A pool of hundreds of threads takes
/// some tenths of a second to start.
const SPAN_MIN_NS: u64 = 2_000_000_000;
/// Largest number of ended threads, as a share of those that are live.
const ENDED_MAX: f64 = 0.25;

/// Largest number of threads that a pool usually has.
const POOL_MAX: usize = 256;

/// Largest share of a process's time, one in so many, for which it waits at its end. A program that
/// waits starts no threads, and has not stopped to start them.
const WAIT_MAX: u64 = 4;

/// Beginnings of the names of functions that start threads.
const STARTERS: &[&str] = &["pthread_create", "__pthread_create", "allocate_stack", "_dl_allocate_tls"];

/// Finding about the process whose threads grow most. It is not told of samples: a thread is known
/// from its first sample on. Threads of a pool would seem to start one by one.
pub(crate) fn threads(recording: &Recording<'_>) -> Option<Finding> {
    let sampling = recording.trace.sampling();
    if !sampling.is_exact() && !sampling.is_by_runtimes() {
        return None;
    }
    let mut all = lives(recording.trace);
    let whole: Vec<bool> = all.iter().map(|lives| growing(lives).is_some()).collect();
    for (lives, work) in all.iter_mut().zip(&recording.processes) {
        let last = work.end.checked_sub(1).and_then(|last| recording.times_ns.get(last));
        last.iter().for_each(|&&worked_until_ns| lives.ignore_wait(worked_until_ns));
        lives.ignore_end_of_starts();
    }
    let (process, growing) = all
        .iter()
        .zip(0..)
        .filter_map(|(lives, process)| Some((ProcessIndex(process), growing(lives)?)))
        .max_by_key(|(process, growing)| (growing.live, std::cmp::Reverse(*process)))?;
    let known = recording.trace.processes().get(process.0 as usize)?;
    let starter = starter(recording, process, growing.live);
    let started = starter.as_ref().map_or(String::new(), |(_, name)| format!(", started by {name}"));
    let ended = match growing.ended {
        0 => "none has ended".to_owned(),
        ended => format!("{} have ended", count(ended as u64)),
    };
    let place = process.0 as usize;
    let until_ns = all.get(place)?.span_ns.1;
    let sentence = format!(
        "Threads grow: {} threads are live {}, {} of them since {}, and {ended}{started}.",
        count(growing.live as u64),
        recording.after(until_ns),
        count(growing.since_start as u64),
        duration(growing.from_ns),
    );
    let accounts = recording.trace.memory_accounts().iter().filter(|account| account.process == process);
    let parts = accounts.flat_map(|account| &account.parts);
    let stack_bytes =
        parts.filter(|part| part.kind == PartKind::ThreadStacks).map(|part| part.bytes).max().unwrap_or(0);
    let mut evidence = vec![format!(
        "a thread has a stack, thread-local data and caches of the allocator{}; it ends when its function returns: a \
         pool that is closed, a queue that is ended",
        match stack_bytes {
            0 => "; how much of their stacks is resident is not known".to_owned(),
            stack_bytes => format!(": {} of stacks are resident", bytes(stack_bytes)),
        }
    )];
    if starter.is_none() {
        evidence.push("where most were started is not told by the blocks of the recording".to_owned());
    }
    if recording.trace.session().command_line.is_empty() {
        evidence.push(
            "a thread counts as started with its first call of the allocator: one that is older than the recording, too"
                .to_owned(),
        );
    }
    Some(Finding {
        kind: Kind::Growth,
        sentence,
        // A pool that is full, and waits, starts no threads in its last part either.
        confidence: match whole.get(place) {
            Some(true) => Confidence::High,
            _ if growing.live > POOL_MAX => Confidence::High,
            _ => Confidence::Medium,
        },
        own_frame: starter.map(|(own_frame, _)| own_frame),
        bytes: stack_bytes,
        is_left: known.end_ns.is_some(),
        evidence,
        command: format!("heapr info {}", quoted(&recording.file)),
        ..Finding::default()
    })
}

/// Times of a process's threads.
struct Lives {
    /// Start and end of the process's time, in nanoseconds.
    span_ns: (u64, u64),
    /// Nanoseconds behind that in which the process only waits.
    wait_ns: u64,
    /// Start of each thread, and its end if that was seen before the process's.
    threads: Vec<(u64, Option<u64>)>,
}

/// Times of the threads of all processes, by process.
fn lives(trace: &Trace) -> Vec<Lives> {
    let span_of = |process: &Process| {
        let end_ns = process.end_ns.unwrap_or(trace.duration_ns());
        Lives { span_ns: (process.start_ns, end_ns), wait_ns: 0, threads: Vec::new() }
    };
    let mut all: Vec<Lives> = trace.processes().iter().map(span_of).collect();
    for thread in trace.threads() {
        if let Some(lives) = all.get_mut(thread.process.0 as usize) {
            lives.threads.push((thread.start_ns, thread.end_ns));
        }
    }
    let ended = all.iter_mut().zip(trace.processes()).filter(|(_, process)| process.end_ns.is_some());
    ended.for_each(|(lives, _)| lives.ignore_last_ends());
    all
}

impl Lives {
    /// Leaves out the time in which the process waits at its end, up to a part of its time.
    fn ignore_wait(&mut self, worked_until_ns: u64) {
        let (start_ns, end_ns) = (self.span_ns.0, self.span_ns.1.saturating_add(self.wait_ns));
        let least_ns = end_ns.saturating_sub(end_ns.saturating_sub(start_ns) / WAIT_MAX);
        self.span_ns.1 = worked_until_ns.clamp(least_ns, end_ns);
        self.wait_ns = end_ns.saturating_sub(self.span_ns.1);
    }

    /// Leaves out the time after the last start, if more threads were started than a pool has.
    /// Blocks that are made in it do not end the wait.
    fn ignore_end_of_starts(&mut self) {
        let last_ns = self.threads.iter().map(|&(start_ns, _)| start_ns).max().unwrap_or(0);
        if self.threads.len() > POOL_MAX && last_ns < self.span_ns.1 {
            self.ignore_wait(last_ns);
        }
    }

    /// Takes threads that ended in the last part of the time for live: a process ends its threads
    /// as it ends.
    fn ignore_last_ends(&mut self) {
        let (start_ns, end_ns) = self.span_ns;
        let work_end_ns = end_ns.saturating_sub(end_ns.saturating_sub(start_ns) / MOMENTS);
        for (_, end) in &mut self.threads {
            *end = end.filter(|&end| end < work_end_ns);
        }
    }
}

/// Growth of a number of threads.
#[derive(Debug, PartialEq)]
struct GrowingThreads {
    live: usize,
    ended: usize,
    /// Number of live threads that were started after `from_ns`.
    since_start: usize,
    /// Time since the start of the recording.
    from_ns: u64,
}

/// Judges whether the number of live threads grows over the whole time.
fn growing(lives: &Lives) -> Option<GrowingThreads> {
    let (start_ns, end_ns) = lives.span_ns;
    let span_ns = end_ns.checked_sub(start_ns)?;
    if span_ns.saturating_add(lives.wait_ns) < SPAN_MIN_NS {
        return None;
    }
    let step_ns = span_ns / MOMENTS;
    let at = |part: u64| start_ns + part * step_ns;
    let live_at = |time_ns: u64| {
        let is_live =
            |&&(start, end): &&(u64, Option<u64>)| start <= time_ns && end.is_none_or(|end| end > time_ns);
        lives.threads.iter().filter(is_live).count()
    };
    let points: Vec<(u64, u64)> = (2..=MOMENTS).map(|part| (at(part), live_at(at(part)) as u64)).collect();
    let (first, last) = (points.first()?.1, live_at(end_ns));
    let more = (last as u64).checked_sub(first).filter(|&more| more > 0)? as f64;
    let steps = points.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1));
    let largest = steps.max().unwrap_or(0) as f64;
    let late = last.saturating_sub(live_at(at(MOMENTS * 2 / 3))) as f64;
    let ended = lives.threads.iter().filter(|(_, end)| end.is_some()).count();
    let is_steady = largest <= more * STEP_MAX && late >= more * LATE_MIN;
    let is_growing = last >= LIVE_MIN
        && more >= last as f64 / 2.0
        && ended as f64 <= last as f64 * ENDED_MAX
        && is_steady
        && Trend::of(&points)?.chance <= 0.01;
    is_growing.then_some(GrowingThreads { live: last, ended, since_start: more as usize, from_ns: at(2) })
}

/// Function that started at least half of the live threads: the own frame of the blocks that are
/// made for a new one.
fn starter(recording: &Recording<'_>, process: ProcessIndex, live: usize) -> Option<(OwnFrame, String)> {
    let mut most: Option<(u64, StackIndex)> = None;
    recording.for_each_total(|totals| {
        if recording.process_of(totals.stack) == process
            && most.is_none_or(|(known, _)| totals.amounts.outstanding_count > known)
            && starts_threads(recording, totals.stack)
        {
            most = Some((totals.amounts.outstanding_count, totals.stack));
        }
    });
    let (_, stack) = most.filter(|(started, _)| started.saturating_mul(2) >= live as u64)?;
    let number = recording.site_of.get(stack.0 as usize).copied()?;
    let site = recording.sites.iter().find(|site| site.number == number)?;
    let (own_frame, name) = recording.name_at(site, stack);
    (site.owner != Owner::Runtime)
        .then(|| (own_frame, recording.through(stack).named(name).trim_end_matches(',').to_owned()))
}

fn starts_threads(recording: &Recording<'_>, stack: StackIndex) -> bool {
    let Some(named) = recording.wanted_name(stack) else { return false };
    let frames = &recording.tree.frames;
    recording
        .tree
        .frames_of(named)
        .take(6)
        .filter_map(|frame| frames.symbol(frame))
        .any(|symbol| STARTERS.iter().any(|start| symbol.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Times are in milliseconds.
    fn judged(threads: impl Iterator<Item = (u64, Option<u64>)>) -> Option<usize> {
        let threads = threads.map(|(start, end)| (start * MS, end.map(|end| end * MS)));
        let lives = Lives { span_ns: (0, 2400 * MS), wait_ns: 0, threads: threads.collect() };
        growing(&lives).map(|growing| growing.live)
    }

    #[test]
    fn threads_that_are_started_all_the_time_and_never_end_grow() {
        assert_eq!(judged((0..240).map(|number| (number * 10, None))), Some(240));
        assert_eq!(judged((0..40).map(|number| (number * 60, None))), Some(40));
    }

    #[test]
    fn threads_that_end_with_their_process_are_live_and_times_are_those_of_the_recording() {
        let threads: Vec<(u64, Option<u64>)> =
            (0..240).map(|number| ((5000 + number * 10) * MS, Some(7390 * MS))).collect();
        let mut lives = Lives { span_ns: (5000 * MS, 7400 * MS), wait_ns: 0, threads };
        assert_eq!(growing(&lives), None, "they ended while the process went on");
        lives.ignore_last_ends();
        let growing = growing(&lives).expect("all are live");
        assert_eq!((growing.live, growing.ended, growing.from_ns), (240, 0, 5200 * MS));
    }

    #[test]
    fn a_wait_at_the_end_is_no_time_without_new_threads() {
        let threads = |step: u64| (0..240).map(move |number| (number * step * MS, None)).collect();
        let mut waits = Lives { span_ns: (0, 3100 * MS), wait_ns: 0, threads: threads(10) };
        waits.ignore_wait(2400 * MS);
        assert_eq!(growing(&waits).map(|growing| growing.live), Some(240));
        let mut short = Lives { span_ns: (0, 2100 * MS), wait_ns: 0, threads: threads(8) };
        short.ignore_wait(1920 * MS);
        assert_eq!(growing(&short).map(|growing| growing.live), Some(240), "the wait is of its time, too");
        // More threads than a pool has, and blocks that are made during the wait.
        let many = (0..660).map(|number| (number * 4 * MS, None)).collect();
        let mut many = Lives { span_ns: (0, 3500 * MS), wait_ns: 0, threads: many };
        many.ignore_wait(3500 * MS);
        assert_eq!(growing(&many), None);
        many.ignore_end_of_starts();
        assert_eq!((growing(&many).map(|growing| growing.live), many.wait_ns), (Some(660), 864 * MS));
        let full = (0..660).map(|number| (number * MS, None)).collect();
        let mut full = Lives { span_ns: (0, 3400 * MS), wait_ns: 0, threads: full };
        full.ignore_end_of_starts();
        assert_eq!(growing(&full), None, "as many from the start on");
        let mut filled = Lives { span_ns: (0, 3100 * MS), wait_ns: 0, threads: threads(4) };
        filled.ignore_wait(960 * MS);
        assert_eq!((filled.span_ns.1, growing(&filled)), (2325 * MS, None), "a pool that is full, and waits");
    }

    #[test]
    fn pools_short_threads_and_few_threads_do_not_grow() {
        assert_eq!(judged((0..240).map(|number| (number / 10, None))), None, "a pool made at the start");
        assert_eq!(judged((0..240).map(|number| (number * 10, Some(number * 10 + 5)))), None, "they end");
        assert_eq!(judged((0..20).map(|number| (number * 100, None))), None, "few");
        assert_eq!(judged((0..240).map(|number| (number * 3, None))), None, "a pool that fills up");
        assert_eq!(judged((0..240).map(|_| (1200, None))), None, "a pool that is made later");
        let start: Vec<(u64, Option<u64>)> = (0..240).map(|number| (number * MS / 2, None)).collect();
        let short = Lives { span_ns: (0, 120 * MS), wait_ns: 0, threads: start };
        assert_eq!(growing(&short), None, "a program that ends as soon as its threads are there");
    }
}
