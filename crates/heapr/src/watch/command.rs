//! Run of `heapr watch`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use heapr_incident::{Journal, Store};
use heapr_table::quantity::plural;

use super::arguments::WatchArguments;
use super::earlier::{boot_id, incidents_since, left_path};
use super::kills::Kills;
use super::objects::remove_left;
use super::recorded::Recorded;
use super::recorder::{Recorder, end_left};
use super::replacements::Replacements;
use super::report::Report;
use super::scan::Watched;
use super::targets::Targets;
use super::ticks::Ticks;
use super::waiting::Signals;
use super::watcher::Watcher;

/// Name of the recording in the folder of incidents.
const RECORDING: &str = "watch.heapr";

/// Runs the command.
pub(crate) fn run(arguments: WatchArguments) -> anyhow::Result<ExitCode> {
    heapr_inject::give_back_memory();
    let targets = Targets::of(&arguments)?;
    let folder = arguments.folder()?;
    let store = Store::made(&folder)?;
    remove_left(store.folder().path());
    let report = Report::new(
        store,
        arguments.bounds(),
        (arguments.webhook.as_deref(), arguments.otlp.as_deref()),
        arguments.quiet,
    )?;
    let recording = folder.join(RECORDING);
    // A signal that comes while processes are attached to must not leave the recorder alone.
    let mut signals = Signals::catch()?;
    // The log is opened before processes are looked at, so that no kill is missed.
    let kills = Kills::open(false);
    if targets.has_own_group() {
        be_killed_last();
    }
    let recorder = take_over(&report, &recording)?;
    let recorder = match recorder {
        Some(recorder) => {
            // The watch before may have had another rate, or was killed while all was recorded.
            if let Err(error) = recorder.sample(arguments.sample, None) {
                warn!("the rate of the samples is still that of the watch before: {error:#}");
            }
            recorder
        }
        None => Recorder::start(&recording, arguments.sample, targets.has_flagged)?,
    };
    let now = Instant::now();
    let mut watcher = Watcher {
        targets,
        rules: arguments.rules(),
        sample: arguments.sample,
        report,
        recorder: Some(recorder),
        replacements: Replacements::default(),
        recorder_due: None,
        full_for: arguments.full_for(),
        full_until: None,
        recording,
        kills,
        is_until_end: arguments.until_end,
        is_graph: arguments.graph,
        watched: Watched::default(),
        pending: Vec::new(),
        ticks: Ticks::begin(),
        next_scan: now,
        next_reading: now,
        next_own: now,
        next_journal: now,
        next_give_back: now,
        is_journal_old: true,
        death_count: 0,
    };
    // The next watcher finds the recorder by the journal.
    watcher.write_journal();
    watcher.watched.scan(&watcher.targets, watcher.recorder.as_ref());
    watcher.write_journal();
    if !arguments.quiet {
        tell_start(&watcher, &folder);
    }
    let outcome = watcher.run(&mut signals);
    if signals.is_handed_over() {
        watcher.write_journal();
        if !arguments.quiet {
            watcher.tell_handed_over();
        }
    } else {
        watcher.recorder.iter().for_each(Recorder::stop);
        Journal::remove(watcher.report.store.folder());
    }
    watcher.report.finish();
    outcome?;
    let has_died = arguments.until_end && watcher.death_count > 0;
    Ok(if has_died { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Has the kernel kill this process last where the memory of its own group runs out, and the
/// recorder, which inherits that. It needs a privilege; without it all stays as it was.
fn be_killed_last() {
    const LAST: &str = "-900";
    let _ = std::fs::write("/proc/self/oom_score_adj", LAST);
}

/// Tells what happened since the last watcher, if that was killed, and goes on with its recorder if
/// that lives.
fn take_over(report: &Report, recording: &Path) -> anyhow::Result<Option<Recorder>> {
    let journal = match Journal::read(report.store.folder()) {
        Ok(Some(journal)) => journal,
        Ok(None) => return Ok(None),
        Err(error) => {
            warn!("what the last watcher left is not told: {error}");
            return Ok(None);
        }
    };
    let recorder = Recorder::running(&journal.session, recording);
    if recorder.is_none() && journal.boot_id == boot_id() {
        end_left(&journal);
    }
    if let Some(Err(error)) = recorder.as_ref().map(Recorder::flush) {
        warn!("the recording is complete up to its last second only: {error:#}");
    }
    let recorder_pid = recorder.as_ref().map(|recorder| recorder.pid);
    for incident in incidents_since(&journal, Recorded { path: recording, recorder_pid }) {
        report.add(incident, recording)?;
    }
    if recorder.is_none() {
        let _ = std::fs::rename(recording, left_path(recording));
    }
    Ok(recorder)
}

fn tell_start(watcher: &Watcher, folder: &Path) {
    let watched = &watcher.watched;
    let not_recorded = watched.processes.iter().filter(|process| process.not_recorded.is_some()).count();
    let recorded = match not_recorded {
        0 => String::new(),
        number => format!(" ({number} of them not recorded)"),
    };
    tell!(
        "heapr: watching {}{recorded} in {}; incidents go to {}",
        plural(watched.processes.len() as u64, "process").replace("processs", "processes"),
        plural(watched.groups.len() as u64, "control group"),
        folder.display()
    );
    if let Some(why) = &watcher.kills.not_read {
        tell!("heapr: kills are told by counters of the groups alone: {why}");
    }
    for group in &watched.groups {
        for refused in group.notices.iter().flat_map(|notices| &notices.refused) {
            warn!("no notice of {}: {refused}", group.path());
        }
        let is_own = heapr_proc::GroupFolder::of_process(std::process::id()).as_ref() == Some(&group.folder);
        if is_own {
            warn!(
                "heapr runs in {} itself: its memory counts there, and it may be killed with it. Start it in another \
                 control group",
                group.path()
            );
        }
    }
}
