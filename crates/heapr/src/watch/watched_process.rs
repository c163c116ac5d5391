//! A process that is watched.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use heapr_incident::{
    Account, AtOutOfMemory, Ending, JournalProcess, Limited, OwnClimb, OwnLimit, ProcessNamed, Rules,
    RuntimeLimit, unix_ns,
};
use heapr_proc::{GroupFolder, Stat, start_ticks};
use heapr_session::ProcessFacts;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::account;
use super::heap_course::HeapCourse;
use super::objects::Objects;
use super::own_limits::{OwnLimits, address_space};
use super::targets::container_id;

/// Growth of the resident set, in hundredths, after which its account is read again.
const ACCOUNT_GROWTH_PERCENT: u64 = 25;
/// Least resident bytes of which an account is read.
const ACCOUNT_BYTES_MIN: u64 = 8 << 20;
/// Rise of the share of unknown memory, in hundredths, by which an account is worse than the last.
const UNKNOWN_PERCENT: u64 = 20;

/// Fields of `/proc/PID/stat`: time in user and kernel mode, mapped bytes, and resident pages.
const PROGRESS: [usize; 4] = [14, 15, 23, 24];

/// Process that is watched.
#[derive(Debug)]
pub(super) struct WatchedProcess {
    pub(super) named: ProcessNamed,
    pub(super) start_ticks: u64,
    life: Option<OwnedFd>,
    pub(super) group: Option<GroupFolder>,
    pub(super) account: Option<Account>,
    /// Most mapped bytes so far.
    pub(super) address_space: Option<Limited>,
    /// Mapped bytes at the last reading.
    pub(super) mapped: Option<Limited>,
    limits: OwnLimits,
    /// Time that it had run and its size, at the last reading.
    progress: Option<[u64; 4]>,
    /// Growth of its language's heap.
    heap: HeapCourse,
    /// Judges of the limits that it has by itself.
    own_climbs: Vec<(OwnLimit, OwnClimb)>,
    /// Reason for which the process is not recorded.
    pub(super) not_recorded: Option<String>,
    /// Whether the reason is a lack of room in its group, which may change.
    pub(super) lacks_room: bool,
    /// Whether the user has named this process.
    pub(super) is_named: bool,
    /// Number of the warning of a limit that it has by itself.
    pub(super) warning: Option<u32>,
    pub(super) objects: Objects,
}

impl WatchedProcess {
    /// Begins to watch a process; `None` if it has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let life = pidfd_open(number, PidfdFlags::empty()).ok();
        let facts = ProcessFacts::of(pid)?;
        if !heapr_proc::is_alive(pid) {
            return None;
        }
        let group = GroupFolder::of_process(pid);
        let path = group.as_ref().map(GroupFolder::path);
        let container = path.as_deref().and_then(container_id);
        let named = ProcessNamed {
            pid,
            name: facts.name().to_owned(),
            executable: facts.executable.to_string_lossy().into_owned(),
            host: container.as_ref().and_then(|_| heapr_proc::variable(pid, "HOSTNAME")),
            unit: unit(&facts.control_group),
            container,
            group: path,
            started_unix_ns: started_unix_ns(facts.start_ticks),
            rss_bytes: heapr_proc::resident_bytes(pid),
        };
        let (address_space, mapped) = address_space(pid).unzip();
        Some(Self {
            limits: OwnLimits::of(pid),
            named,
            start_ticks: facts.start_ticks,
            life,
            group,
            account: None,
            address_space,
            mapped,
            progress: None,
            heap: HeapCourse::default(),
            own_climbs: Vec::new(),
            not_recorded: None,
            lacks_room: false,
            is_named: false,
            warning: None,
            objects: Objects::default(),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.named.pid
    }

    /// Descriptor that becomes readable at the end of the process.
    pub(super) fn life(&self) -> Option<BorrowedFd<'_>> {
        self.life.as_ref().map(AsFd::as_fd)
    }

    /// Opens the descriptor anew. The one before has told the end of a thread, or of a process that
    /// had this number before.
    pub(super) fn renew_life(&mut self) {
        let number = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        self.life = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        start_ticks(self.pid()) != Some(self.start_ticks) || !heapr_proc::is_alive(self.pid())
    }

    /// End of the process, as far as it is known by now.
    pub(super) fn ending(&self) -> Ending {
        let is_it = |stat: &Stat| stat.number(22) == Some(self.start_ticks);
        let zombie = Stat::of_process(self.pid()).filter(is_it).filter(Stat::has_ended);
        let of_zombie = zombie.as_ref().and_then(|_| heapr_proc::wait_status_of_zombie(self.pid()));
        let status = of_zombie.or_else(|| heapr_inject::exit_status(self.life.as_ref()?));
        // A zombie's status of 0 is also that which readers without permission see. They see no
        // namespace of it either.
        let is_readable = || heapr_proc::namespace(self.pid(), "user").is_some();
        Ending::of_wait_status(status.or_else(|| zombie.filter(|_| is_readable()).map(|_| 0)))
    }

    /// Reads the size of the process, and its account if it has grown since the last one.
    pub(super) fn read(&mut self, is_account_wanted: bool) {
        // A look that stays due at a process that has ended would wake the watch for ever.
        let is_heap_due = self.is_heap_due(Instant::now());
        if is_heap_due {
            self.heap.forget_next();
        }
        // The number may be another process's by now.
        let stat = Stat::of_process(self.pid()).filter(|stat| stat.number(22) == Some(self.start_ticks));
        let Some(stat) = stat else { return };
        // One that has neither run nor changed its size has nothing new. A due look is taken still:
        // the last account may be older than the last reading.
        let progress = PROGRESS.map(|field| stat.number(field).unwrap_or(0));
        if self.progress == Some(progress) && !is_heap_due {
            return;
        }
        // A process that ends has no memory any more; its last size counts.
        let Some(rss_bytes) = heapr_proc::resident_bytes(self.pid()) else { return };
        self.progress = Some(progress);
        self.follow_exec();
        self.named.rss_bytes = Some(rss_bytes);
        if let Some((most, mapped)) = address_space(self.pid()) {
            (self.address_space, self.mapped) = (Some(most), Some(mapped));
        }
        let before = self.account.as_ref().map_or(0, |account| account.rss_bytes);
        let has_grown = rss_bytes >= ACCOUNT_BYTES_MIN
            && rss_bytes >= before.saturating_add(before / 100 * ACCOUNT_GROWTH_PERCENT);
        let is_near = self.is_near_own_limit();
        if is_heap_due && !is_near && rss_bytes <= before {
            self.heap.note_rest();
        }
        let is_near_own_limit = (is_heap_due || is_near) && rss_bytes > before;
        if is_account_wanted && (has_grown || is_near_own_limit) {
            let begin = Instant::now();
            let found = account::of_process(self.pid());
            // The contents of a process that is being killed cannot be read.
            let is_worse = |found: &Account| {
                let before = self.account.as_ref();
                unknown_percent(found) > before.map_or(100, unknown_percent).saturating_add(UNKNOWN_PERCENT)
            };
            self.account = found.filter(|found| !is_worse(found)).or(self.account.take());
            self.note_heap(begin.elapsed());
        }
    }

    /// Takes over the program that an exec has put in place of the one before. Most processes are
    /// first seen as those that start them.
    fn follow_exec(&mut self) {
        let is_same = |path: std::path::PathBuf| path.to_string_lossy() == self.named.executable.as_str();
        if heapr_proc::executable(self.pid()).map_or(true, is_same) {
            return;
        }
        let Some(facts) = ProcessFacts::of(self.pid()) else { return };
        self.named.name = facts.name().to_owned();
        self.named.executable = facts.executable.to_string_lossy().into_owned();
        self.limits = OwnLimits::of(self.pid());
        (self.account, self.address_space, self.mapped) = (None, None, None);
        (self.heap, self.own_climbs) = (HeapCourse::default(), Vec::new());
    }

    /// Notes the heap of the last account, which took `took`.
    fn note_heap(&mut self, took: Duration) {
        let account = self.account.as_ref();
        if let (Some(account), Some(runtime)) = (account, self.limits.runtime(account)) {
            self.heap.note(account.read_unix_ns, runtime.amount, took);
        }
    }

    /// Time at which the heap of its language is looked at next, if it grows towards its limit.
    pub(super) fn next_heap_look(&self) -> Option<Instant> {
        self.heap.next()
    }

    /// Whether the heap is to be looked at now.
    pub(super) fn is_heap_due(&self, now: Instant) -> bool {
        self.heap.next().is_some_and(|next| next <= now)
    }

    /// Looks at the objects of a CPython process that has grown. `left_bytes`: memory that its
    /// group has left.
    pub(super) fn look_at_objects(&mut self, folder: &std::path::Path, left_bytes: Option<u64>) {
        let is_python = self.account.as_ref().is_some_and(|account| {
            account
                .lines
                .iter()
                .any(|line| line.class == "python_arenas" && line.bytes > account.rss_bytes / 5)
        });
        if let Some(rss_bytes) = self.named.rss_bytes.filter(|_| is_python) {
            self.objects.take_if_due(folder, self.pid(), rss_bytes, left_bytes);
        }
    }

    /// Heap of the language and its limit at the last account, and as it is expected to be at a
    /// time.
    pub(super) fn runtime(&self, unix_ns: u64) -> Option<RuntimeLimit> {
        let expected_bytes = self.heap.expected_bytes(unix_ns);
        self.limits.runtime(self.account.as_ref()).map(|runtime| RuntimeLimit { expected_bytes, ..runtime })
    }

    /// Options by which the program ends at an OutOfMemoryError.
    pub(super) fn at_out_of_memory(&self) -> &[AtOutOfMemory] {
        &self.limits.at_out_of_memory
    }

    /// Whether a limit that it has by itself is near.
    pub(super) fn is_near_own_limit(&self) -> bool {
        self.limits.is_near(self.account.as_ref())
    }

    /// Judges the limits that the process has by itself. Each climb is told once.
    pub(super) fn judge_own(&mut self, rules: &Rules) -> Option<(OwnLimit, u64, Limited)> {
        let amounts: Vec<(OwnLimit, Limited)> =
            self.limits.told(self.account.as_ref(), self.mapped).collect();
        amounts.into_iter().find_map(|(of, amount)| {
            let place = self.own_climbs.iter().position(|(known, _)| *known == of).unwrap_or_else(|| {
                self.own_climbs.push((of, OwnClimb::default()));
                self.own_climbs.len() - 1
            });
            let percent = self.own_climbs[place].1.judge(rules, amount)?;
            Some((of, percent, amount))
        })
    }

    pub(super) fn journal(&self) -> JournalProcess {
        JournalProcess {
            process: self.named.clone(),
            start_ticks: self.start_ticks,
            account: self.account.clone(),
        }
    }
}

/// Share of memory of an unknown owner, in hundredths.
fn unknown_percent(account: &Account) -> u64 {
    let unknown = account.lines.iter().find(|line| line.class == "unknown").map_or(0, |line| line.bytes);
    unknown.saturating_mul(100) / account.rss_bytes.max(1)
}

/// Systemd unit of a control group.
fn unit(path: &str) -> Option<String> {
    let is_unit = |part: &&str| part.ends_with(".service");
    path.rsplit('/').find(is_unit).map(str::to_owned)
}

/// Wall clock at the start of a process.
fn started_unix_ns(start_ticks: u64) -> Option<u64> {
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = uptime - start_ticks as f64 / ticks_per_second as f64;
    Some(unix_ns().saturating_sub((age.max(0.0) * 1e9) as u64))
}

/// Whether the process id of the kernel's log is that of a process: ids differ in namespaces.
pub(super) fn has_first_namespace() -> bool {
    /// Inode number of the machine's first pid namespace, which is a constant of the kernel.
    const FIRST: u32 = 0xEFFF_FFFC;
    heapr_proc::namespace(std::process::id(), "pid") == Some(FIRST)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_has_the_name_of_the_program_that_its_shell_execs() {
        let mut shell = Command::new("sh")
            .args(["-c", "read line; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = WatchedProcess::of(shell.id()).unwrap();
        let before = process.named.name.clone();
        process.read(false);
        assert_eq!(process.named.name, before);
        let mut input = shell.stdin.take().unwrap();
        input.write_all(b"go\nhere\n").unwrap();
        // The answer is that of the other program.
        let mut answer = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        process.read(false);
        assert_eq!((answer.as_str(), process.named.name.as_str()), ("here\n", "cat"));
        assert!(process.named.executable.ends_with("cat") && before != "cat");
        drop(input);
        shell.wait().unwrap();
    }
}
