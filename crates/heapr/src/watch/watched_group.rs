//! A control group that is watched.

use std::time::{Duration, Instant};

use heapr_incident::{
    Climb, Course, GroupEvents, GroupFacts, JournalGroup, Levels, Notices, Point, State, deciding_limit,
    unix_ns,
};
use heapr_proc::{Fields, GroupFolder, GroupLimit, GroupNumber};

use super::ticks::Ticks;

/// Shares of the limit, in hundredths, at which version 1 sends a notice.
const NOTICED_PERCENT: [u64; 3] = [70, 85, 95];
/// Readings are this far apart, by the share of the limit.
const NEAR: Duration = Duration::from_secs(1);
const MIDDLE: Duration = Duration::from_secs(3);
const FAR: Duration = Duration::from_secs(9);
/// Time for which a new group is read as often as one near its limit: programs mostly grow first.
const YOUNG: Duration = Duration::from_secs(60);
/// Least change of usage, as a part of the limit, for a reading of all counters.
const CHANGE_PART: u64 = 100;
/// Longest time without a reading of all counters, and that of a group far from its limit.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
const WHOLE_FAR_EVERY: Duration = Duration::from_secs(180);
/// Time after a notice for which further ones wait.
const QUIET: Duration = Duration::from_millis(50);
/// Time for which further notices wait, as a multiple of the time that the last ones took. Groups
/// of many processes under pressure must not keep a processor busy.
const REST: u32 = 4;
/// Time for which a counted kill may be that of a watched process that has not ended yet.
const KILL_KEPT: Duration = Duration::from_secs(60);
/// Time over which the trend is judged, ns.
const TREND_NS: u64 = 60_000_000_000;

/// Control group that is watched.
#[derive(Debug)]
pub(super) struct WatchedGroup {
    pub(super) folder: GroupFolder,
    pub(super) levels: Levels,
    pub(super) notices: Vec<Notices>,
    pub(super) course: Course,
    pub(super) climb: Climb,
    pub(super) facts: GroupFacts,
    /// Processes at the last reading of all counters.
    pub(super) pids: Vec<u32>,
    /// Limits of the group and of those above it, at that reading.
    pub(super) limits: Vec<GroupLimit>,
    /// File of the usage.
    usage: Option<GroupNumber>,
    noticed_limit: Option<u64>,
    begun: Instant,
    /// Time until which notices wait: pressure may send hundreds a second.
    pub(super) quiet_until: Instant,
    read: Option<Instant>,
    /// Time at which a kill was counted that no watched process has died of.
    counted: Option<Instant>,
    usage_bytes: u64,
    /// Most bytes that it held before the course, as far as its processes tell that.
    peak_bytes: u64,
    /// Whether usage had changed at the last reading.
    pub(super) is_moving: bool,
    /// Time of the next reading.
    pub(super) next: Instant,
    /// Number of the warning that the present climb has caused.
    pub(super) warning: Option<u32>,
}

impl WatchedGroup {
    pub(super) fn of(folder: GroupFolder) -> Self {
        let levels = Levels::of(&folder);
        let mut group = Self {
            folder,
            levels,
            notices: Vec::new(),
            course: Course::default(),
            climb: Climb::default(),
            facts: GroupFacts::default(),
            pids: Vec::new(),
            limits: Vec::new(),
            usage: None,
            noticed_limit: None,
            begun: Instant::now(),
            quiet_until: Instant::now(),
            read: None,
            counted: None,
            usage_bytes: 0,
            peak_bytes: 0,
            is_moving: true,
            next: Instant::now(),
            warning: None,
        };
        group.read_whole();
        group
    }

    pub(super) fn path(&self) -> String {
        self.folder.path()
    }

    /// Begins the course anew: memory that the attach took is no growth of the program.
    pub(super) fn begin_course(&mut self) {
        self.course = Course::default();
        self.read_whole();
        let fallen = self.pids.iter().map(|&pid| {
            let fields = Fields::of_process(pid).unwrap_or_default();
            let [peak, now] = ["VmHWM", "VmRSS"].map(|name| fields.bytes(name).unwrap_or(0));
            peak.saturating_sub(now)
        });
        self.peak_bytes = self.held_bytes().saturating_add(fallen.sum());
    }

    /// Asks the kernel for notices, anew after a change of the limit.
    fn ask_for_notices(&mut self, limit_bytes: Option<u64>) {
        if self.noticed_limit == limit_bytes && !self.notices.is_empty() {
            return;
        }
        self.noticed_limit = limit_bytes;
        let thresholds: Vec<u64> = limit_bytes
            .map(|limit| NOTICED_PERCENT.map(|percent| limit / 100 * percent).to_vec())
            .unwrap_or_default();
        self.notices = vec![Notices::of(&self.folder, &thresholds)];
        let above = self.levels.groups().skip(1);
        self.notices.extend(above.map(Notices::of_kills));
    }

    /// Reads usage, and all counters if it has changed. Returns true after such a reading.
    pub(super) fn read(&mut self, ticks: Ticks) -> bool {
        let has_changed = self.read_usage();
        self.next = ticks.after(Instant::now(), self.pause());
        has_changed
    }

    /// Usage of this moment. A group that is made anew under the same name has another file.
    fn usage(&mut self) -> Option<u64> {
        let known = self.usage.as_ref().and_then(GroupNumber::read);
        known.or_else(|| {
            let file = if self.folder.is_v2() { "memory.current" } else { "memory.usage_in_bytes" };
            self.usage = GroupNumber::open(&self.folder, file);
            self.usage.as_ref()?.read()
        })
    }

    fn read_usage(&mut self) -> bool {
        let Some(usage) = self.usage() else { return false };
        let least = self.facts.limit_bytes.unwrap_or(usage) / CHANGE_PART;
        let whole_every = if self.pause() == FAR { WHOLE_FAR_EVERY } else { WHOLE_EVERY };
        let is_old = self.read.is_none_or(|read| read.elapsed() >= whole_every);
        self.is_moving = usage.abs_diff(self.usage_bytes) > least;
        if !self.is_moving && !is_old {
            // An unchanged group has points, too, so that a rise has a beginning.
            let held_bytes = self.facts.usage_bytes.map_or(0, |_| self.held_bytes());
            self.course.add(Point { unix_ns: unix_ns(), usage_bytes: usage, held_bytes });
            return false;
        }
        self.read_whole();
        self.forget_old_kills();
        true
    }

    /// Lets go of counted kills that no watched process has died of: a later death is not theirs.
    fn forget_old_kills(&mut self) {
        match self.counted {
            _ if !self.levels.has_kill() => self.counted = None,
            None => self.counted = Some(Instant::now()),
            Some(counted) if counted.elapsed() >= KILL_KEPT => {
                self.levels.restart();
                self.counted = None;
            }
            Some(_) => {}
        }
    }

    /// Reads all counters.
    pub(super) fn read_whole(&mut self) {
        let memory = self.folder.memory();
        let Some(usage_bytes) = memory.current_bytes else { return };
        // A group of which all processes have ended keeps its last facts for their incidents.
        if memory.pids.is_empty() && !self.pids.is_empty() {
            return;
        }
        self.limits = self.folder.limits();
        let limit = deciding_limit(&self.limits);
        let parts = memory.parts;
        self.usage_bytes = usage_bytes;
        self.read = Some(Instant::now());
        self.pids = memory.pids;
        let mut facts = GroupFacts {
            path: memory.path,
            version: if self.folder.is_v2() { 2 } else { 1 },
            read_unix_ns: unix_ns(),
            limit_bytes: limit.map(|limit| limit.limit_bytes),
            limited_group: limit.map(|limit| limit.path.clone()),
            lowered: None,
            usage_bytes: Some(usage_bytes),
            anonymous_bytes: parts.anonymous_bytes,
            file_bytes: parts.file_bytes,
            shared_memory_bytes: parts.shared_memory_bytes,
            socket_bytes: parts.socket_bytes,
            kernel_bytes: parts.slab_reclaimable_bytes
                + parts.slab_unreclaimable_bytes
                + parts.page_table_bytes
                + parts.kernel_stack_bytes
                + parts.kernel_other_bytes,
            swapped_bytes: parts.swapped_bytes,
            events: GroupEvents::default(),
            processes: Vec::new(),
        };
        let lowered = facts.lowered_since(&self.facts);
        facts.lowered = lowered.filter(|lowered| !self.has_limit(&facts, lowered.from_bytes));
        self.facts = facts;
        let held_bytes = self.held_bytes();
        self.course.add(Point { unix_ns: unix_ns(), usage_bytes, held_bytes });
        self.ask_for_notices(self.facts.limit_bytes);
    }

    /// True if the limited group of `facts` has a hard limit of so many bytes now. Version 1 has
    /// two limits in a folder: another one may decide, though none was lowered.
    pub(super) fn has_limit(&self, facts: &GroupFacts, limit_bytes: u64) -> bool {
        let limits = self.folder.limits();
        let mut of_group = limits.iter().filter(|limit| Some(&limit.path) == facts.limited_group.as_ref());
        of_group.any(|limit| limit.is_hard && limit.limit_bytes == limit_bytes)
    }

    /// Reads all counters after a notice, and takes the notice.
    pub(super) fn read_noticed(&mut self) {
        // Read first: a kill frees the memory within milliseconds.
        self.read_whole();
        self.notices.iter().for_each(Notices::take);
        // Descriptors of a group that is gone never become quiet.
        if !self.folder.exists() {
            self.notices.clear();
        }
    }

    /// Lets further notices wait after readings that took `spent`.
    pub(super) fn rest_after(&mut self, spent: Duration) {
        self.quiet_until = Instant::now() + QUIET.max(spent.saturating_mul(REST));
    }

    /// Bytes that the kernel cannot take back: all but pages of files.
    fn held_bytes(&self) -> u64 {
        self.facts.usage_bytes.unwrap_or(0).saturating_sub(self.facts.file_bytes)
    }

    /// State for the judgement of a climb.
    pub(super) fn state(&self, rss_bytes: u64) -> State {
        let from = unix_ns().saturating_sub(TREND_NS);
        // A limit above the group is shared with others: what they hold counts, too.
        let is_own = self.facts.limited_group.as_deref() == Some(self.path().as_str());
        let held_bytes = self.held_bytes();
        let held_bytes = match deciding_limit(&self.limits) {
            Some(limit) if !is_own => held_bytes.max(limit.limit_bytes.saturating_sub(limit.free_bytes)),
            _ => held_bytes,
        };
        State {
            held_bytes,
            limit_bytes: self.facts.limit_bytes,
            rate: self.rate(from),
            rss_bytes,
            swapped_bytes: self.facts.swapped_bytes,
            soft_limit: self.soft_limit(),
        }
    }

    /// Soft limit with the least left, and the times that it was met since the group is watched.
    /// Version 1 does not count these.
    fn soft_limit(&self) -> Option<(u64, u64)> {
        let soft = self.limits.iter().filter(|limit| self.folder.is_v2() && !limit.is_hard);
        let nearest = soft.min_by_key(|limit| limit.free_bytes)?;
        Some((nearest.limit_bytes, self.levels.events_of(&nearest.path)?.high?))
    }

    /// Rate of the last minute. `None` before the group was watched for half of it, and while it
    /// holds no more than it had before. A rise must also have lasted as long as it is foretold to
    /// last: a collected heap rises for minutes, too.
    fn rate(&self, from_unix_ns: u64) -> Option<i64> {
        let first = self.course.points().first()?;
        let last = self.course.points().last()?;
        let left_bytes = self.facts.limit_bytes.map_or(0, |limit| limit.saturating_sub(self.held_bytes()));
        (last.unix_ns.saturating_sub(first.unix_ns) >= TREND_NS / 2)
            .then(|| self.course.rate(from_unix_ns))
            .flatten()
            .filter(|_| self.course.rises_beyond(self.peak_bytes))
            .filter(|&rate| self.course.has_risen_as_long(rate, left_bytes))
    }

    /// Time until the next reading.
    fn pause(&self) -> Duration {
        let Some(limit) = self.facts.limit_bytes.filter(|&limit| limit > 0) else { return FAR };
        let percent = u128::from(self.held_bytes()) * 100 / u128::from(limit);
        match percent {
            _ if self.begun.elapsed() < YOUNG => NEAR,
            0..40 if self.is_moving => MIDDLE,
            0..40 => FAR,
            40..70 => MIDDLE,
            _ => NEAR,
        }
    }

    pub(super) fn journal(&self) -> JournalGroup {
        JournalGroup {
            path: self.path(),
            counters: self.levels.counters(),
            facts: self.facts.clone(),
            course: self.course.clone(),
        }
    }
}
