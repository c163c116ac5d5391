//! The loop of a watch: it waits for notices, reads, and makes incidents.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapr_incident::{Ending, Incident, Journal, Rules, tell, unix_ns};
use heapr_session::SampleRate;

use super::dead::{Dead, DeadsGroup, Pending};
use super::deaths::{Circumstances, Told, incidents, is_kill_possible};
use super::earlier::boot_id;
use super::facts::of_group;
use super::kills::Kills;
use super::recorded::Recorded;
use super::recorder::Recorder;
use super::replacements::Replacements;
use super::report::Report;
use super::scan::Watched;
use super::targets::Targets;
use super::ticks::Ticks;
use super::waiting::{Signals, wait};
use super::watched_process::WatchedProcess;

/// Time from the notice of a death to its incident: records of the kernel come, and processes that
/// die together are seen.
const SETTLE: Duration = Duration::from_millis(200);
/// Time between two scans for new processes.
const SCAN_EVERY: Duration = Duration::from_secs(3);
/// Times between two writings of the journal: if readings have changed, and in any case.
const JOURNAL_EVERY: Duration = Duration::from_secs(5);
/// Time after which code that was needed for a while is given back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(60);
/// Time between two readings while a process is near a limit of its own.
pub(super) const NEAR_OWN: Duration = Duration::from_secs(1);
/// Longest wait without a group.
pub(super) const IDLE: Duration = Duration::from_secs(9);

/// State of a watch.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) targets: Targets,
    pub(super) rules: Rules,
    pub(super) sample: SampleRate,
    pub(super) report: Report,
    pub(super) recorder: Option<Recorder>,
    /// Recorders that took the place of one that had ended.
    pub(super) replacements: Replacements,
    /// Time at which another recorder is started.
    pub(super) recorder_due: Option<Instant>,
    /// Time for which all allocations are recorded after a warning; `None`: they are not.
    pub(super) full_for: Option<Duration>,
    /// Time until which all allocations are recorded, and the process whose warning began that.
    pub(super) full_until: Option<(Instant, u32)>,
    pub(super) recording: PathBuf,
    pub(super) kills: Kills,
    pub(super) is_until_end: bool,
    /// Whether objects of Python are looked at.
    pub(super) is_graph: bool,
    pub(super) watched: Watched,
    pub(super) pending: Vec<Pending>,
    pub(super) ticks: Ticks,
    pub(super) next_scan: Instant,
    pub(super) next_reading: Instant,
    /// Time of the next reading of processes without a group, and of those near limits of their
    /// own.
    pub(super) next_own: Instant,
    pub(super) next_journal: Instant,
    pub(super) next_give_back: Instant,
    pub(super) is_journal_old: bool,
    /// Number of deaths that were told.
    pub(super) death_count: u64,
}

impl Watcher {
    /// Watches until a signal comes, or until all processes have ended where that was asked for.
    ///
    /// # Errors
    /// Waiting fails.
    pub(super) fn run(&mut self, signals: &mut Signals) -> anyhow::Result<()> {
        loop {
            let now = Instant::now();
            self.timers(now);
            if self.is_until_end && self.pending.is_empty() && self.watched.processes.is_empty() {
                return Ok(());
            }
            let pause = self.pause(now);
            let woken = wait(
                signals,
                &self.kills,
                self.recorder.as_ref(),
                &self.watched.groups,
                &self.watched.processes,
                pause,
            )?;
            if woken.is_told_to_end {
                self.settle();
                return Ok(());
            }
            self.kills.read();
            self.tell_unseen();
            let mut spent = Duration::ZERO;
            for &place in &woken.groups {
                let begin = Instant::now();
                let Some(group) = self.watched.groups.get_mut(place) else { continue };
                group.read_noticed();
                self.read_processes(place, true);
                spent += begin.elapsed();
                self.judge(place);
                self.judge_own_limits();
            }
            for &place in &woken.groups {
                self.watched.groups.get_mut(place).into_iter().for_each(|group| group.rest_after(spent));
            }
            self.note_ends(&woken.ended);
            if woken.has_recorder_ended {
                self.replace_recorder();
            }
        }
    }

    fn pause(&self, now: Instant) -> Duration {
        // The scan waits for deaths.
        let scan = self.pending.is_empty().then_some(self.next_scan);
        let death = self.pending.iter().map(|one| one.due).min();
        let full = self.full_until.map(|(until, _)| until);
        let heap = self.watched.processes.iter().filter_map(WatchedProcess::next_heap_look).min();
        let times = [scan, death, Some(self.next_reading), self.recorder_due, full, heap];
        let next = times.into_iter().flatten().min().unwrap_or(now + IDLE);
        next.saturating_duration_since(now)
    }

    /// Does what is due.
    fn timers(&mut self, now: Instant) {
        if self.pending.iter().any(|one| one.due <= now) {
            self.tell_deaths();
        }
        // A group that is made anew under its name must not meet the deaths of the one before.
        if now >= self.next_scan && self.pending.is_empty() {
            self.is_journal_old |= self.watched.scan_if_due(&self.targets, self.recorder.as_ref());
            self.watched.drop_groups(&self.targets);
            self.next_scan = self.ticks.after(now, SCAN_EVERY);
            let lifeless = self.watched.without_life();
            self.note_ends(&lifeless);
        }
        if self.recorder_due.is_some_and(|due| due <= now) {
            self.start_recorder();
        }
        if self.full_until.is_some_and(|(until, _)| until <= now) {
            self.end_full();
        }
        self.look_at_heaps(now);
        if now >= self.next_reading {
            self.read_due(now);
        }
        if self.is_journal_old && now >= self.next_journal {
            self.write_journal();
            self.next_journal = now + JOURNAL_EVERY;
        }
        if now >= self.next_give_back {
            heapr_inject::give_back_code();
            self.next_give_back = now + GIVE_BACK_EVERY;
        }
    }

    /// Facts of a group with its processes, living or just dead. Where the limit is that of a group
    /// above, the processes of its other groups count, too.
    pub(super) fn facts_of(&self, place: usize, dead: Option<&[Pending]>) -> DeadsGroup {
        let group = &self.watched.groups[place];
        let limited = group.facts.limited_group.as_deref().unwrap_or("/");
        let is_below = |path: &str| path.strip_prefix(limited).is_some_and(|rest| rest.starts_with('/'));
        let is_member = |process: &&WatchedProcess| {
            process.group.as_ref() == Some(&group.folder)
                || process.named.group.as_deref().is_some_and(is_below)
        };
        let dead = dead.into_iter().flatten().map(|pending| &pending.process);
        let processes = self.watched.processes.iter().chain(dead).filter(is_member);
        of_group(group, processes, group.levels.more())
    }

    fn note_ends(&mut self, places: &[usize]) {
        // From the last one on: places before it stay.
        for &place in places.iter().rev() {
            let Some(process) = self.watched.processes.get(place) else { continue };
            // A thread that execs takes the place of the first thread, which seems over.
            if !process.has_ended() {
                self.watched.processes[place].renew_life();
                continue;
            }
            let process = self.watched.processes.remove(place);
            self.end_full_of(process.pid());
            self.pending.push(Pending { process, time_unix_ns: unix_ns(), due: Instant::now() + SETTLE });
        }
    }

    /// Makes the incidents of all processes that have ended.
    fn tell_deaths(&mut self) {
        self.kills.read();
        let mut pending = std::mem::take(&mut self.pending);
        let mut places: Vec<Option<usize>> =
            pending.iter().map(|one| self.watched.group_of(&one.process)).collect();
        let of_each = places.clone();
        places.sort_unstable();
        places.dedup();
        let mut has_flushed = false;
        for place in places {
            let facts = place.map(|place| self.facts_of(place, Some(&pending)));
            let members = pending.iter().zip(&of_each).filter(|(_, of)| **of == place).map(|(one, _)| one);
            let told: Vec<Told> = members
                .map(|one| {
                    let dead = dead(one);
                    let kill = self.kills.take(one.process.pid(), 0);
                    Told { kill: kill.filter(|_| is_kill_possible(dead.ending)), dead }
                })
                .collect();
            let is_quiet = told.iter().all(|one| one.kill.is_none() && !one.dead.is_incident(facts.as_ref()));
            if is_quiet {
                continue;
            }
            if !std::mem::replace(&mut has_flushed, true) {
                self.flush();
            }
            let circumstances = Circumstances {
                group: facts.as_ref(),
                recorded: self.recorded(),
                log_not_read: self.kills.unread(),
            };
            let mut found = incidents(told, &circumstances);
            name_owners(&mut found, &mut pending);
            self.add_deaths(found, place, &pending);
        }
        self.watched.drop_groups(&self.targets);
        self.is_journal_old = true;
        self.next_journal = Instant::now();
        heapr_inject::give_back_memory();
    }

    pub(super) fn add_deaths(&mut self, found: Vec<Incident>, place: Option<usize>, dead: &[Pending]) {
        for mut incident in found {
            let group = place.and_then(|place| self.watched.groups.get_mut(place));
            let of_group = group.and_then(|group| group.warning.take());
            let own = dead.iter().find(|one| one.process.pid() == incident.process.pid);
            let of_own = own.and_then(|own| own.process.warning);
            let warnings = || of_own.into_iter().chain(of_group);
            let told = warnings().filter_map(|number| self.report.store.read(number).ok());
            incident.warned_unix_ns = told.map(|warning| warning.time_unix_ns).min();
            self.death_count += 1;
            if let Err(error) = self.report.add(incident, &self.recording) {
                warn!("an incident is not kept: {error:#}");
                continue;
            }
            // The death tells what the warning told, and more. Its number is not given again.
            warnings().for_each(|number| self.report.store.remove(number));
        }
        if let Some(group) = place.and_then(|place| self.watched.groups.get_mut(place)) {
            group.levels.restart();
            group.course = heapr_incident::Course::default();
            group.climb = heapr_incident::Climb::default();
        }
    }

    /// The recording, with the process that writes it.
    pub(super) fn recorded(&self) -> Recorded<'_> {
        let recorder_pid = self.recorder.as_ref().map(|recorder| recorder.pid);
        Recorded { path: &self.recording, recorder_pid }
    }

    pub(super) fn flush(&self) {
        if let Some(Err(error)) = self.recorder.as_ref().map(Recorder::flush) {
            warn!("the recording is complete up to its last second only: {error:#}");
        }
    }

    /// Ends in order: deaths that are known are told, the recording is ended.
    fn settle(&mut self) {
        if !self.pending.is_empty() {
            self.tell_deaths();
        }
    }

    /// Tells that the recorder and the journal are left for the next watch.
    pub(super) fn tell_handed_over(&self) {
        let session = self.recorder.as_ref().map_or("no session", |recorder| recorder.name.as_str());
        tell!("heapr: {session} goes on for the next watch into this folder");
    }

    pub(super) fn write_journal(&mut self) {
        self.is_journal_old = false;
        let recorder_pid = self.recorder.as_ref().map_or(0, |recorder| recorder.pid);
        let mut journal = Journal {
            boot_id: boot_id(),
            written_unix_ns: unix_ns(),
            written_us: since_boot_us(),
            session: self.recorder.as_ref().map(|recorder| recorder.name.to_string()).unwrap_or_default(),
            recorder_pid,
            recorder_start_ticks: heapr_proc::start_ticks(recorder_pid).unwrap_or(0),
            recording: self.recording.clone(),
            groups: self.watched.groups.iter().map(super::watched_group::WatchedGroup::journal).collect(),
            processes: self.watched.processes.iter().map(WatchedProcess::journal).collect(),
            ..Journal::default()
        };
        if let Err(error) = journal.write(self.report.store.folder()) {
            warn!("{error}");
        }
    }
}

/// Time since boot in microseconds, as in the kernel's log.
fn since_boot_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000)
        + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

/// Names the owners of objects in incidents whose processes had theirs read.
fn name_owners(found: &mut [Incident], pending: &mut [Pending]) {
    for incident in found {
        let own = pending.iter_mut().find(|one| one.process.pid() == incident.process.pid);
        if let Some(own) = own {
            own.process.objects.tell(incident);
            tell(incident);
        }
    }
}

fn dead(pending: &Pending) -> Dead {
    let process = &pending.process;
    let ending: Ending = process.ending();
    Dead {
        named: process.named.clone(),
        ending,
        time_unix_ns: pending.time_unix_ns,
        not_before_unix_ns: None,
        account: process.account.clone(),
        address_space: process.address_space,
        runtime: process.runtime(pending.time_unix_ns),
        at_out_of_memory: process.at_out_of_memory().to_vec(),
        not_recorded: process.not_recorded.clone(),
        is_named: process.is_named,
    }
}
