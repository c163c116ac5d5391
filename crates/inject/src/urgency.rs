//! The thread that stops a target runs before the target's threads.
//!
//! A program with more running threads than there are processors has its own queue for them:
//! without precedence each thread that is let go takes the processor from the one that lets them
//! go, and the last waits until all others have had their turn. With 64 threads on two processors
//! that made 72 ms of pause, of which 38 were work.

/// Precedence of the calling thread over others, as far as it may have it (as root), until this is
/// dropped. Stays with its thread.
///
/// The lowest of the real-time priorities: nice values count among the threads of one session of
/// the terminal only, and leave a thread that was just let go a turn of its own (on the same
/// machine 42 ms with the first nice value, 38 with this).
#[derive(Debug)]
pub(crate) struct Urgency {
    /// Policy and its parameters before; `None`: nothing was changed.
    before: Option<(i32, libc::sched_param)>,
    /// `*const ()` is not `Send`: dropping it elsewhere would change another thread.
    _of_thread: std::marker::PhantomData<*const ()>,
}

impl Urgency {
    pub(crate) fn begin() -> Self {
        let _of_thread = std::marker::PhantomData;
        let mut parameters = with_priority(0);
        // SAFETY: 0: the calling thread; the parameters are a whole structure of ours.
        let (policy, is_known) =
            unsafe { (libc::sched_getscheduler(0), libc::sched_getparam(0, &raw mut parameters) == 0) };
        let is_ordinary = matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE);
        // Whoever gave this thread another policy knows better.
        if !is_known || !is_ordinary {
            return Self { before: None, _of_thread };
        }
        let urgent = with_priority(1);
        let before =
            set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, urgent).then_some((policy, parameters));
        Self { before, _of_thread }
    }

    /// Whether the calling thread goes before all ordinary ones, so that it must sleep for them to
    /// run on its processor.
    pub(crate) fn is_on() -> bool {
        // SAFETY: 0: the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR)
    }
}

/// Lets a process that we have made and will end run before others, as far as we may. Whether it
/// does.
pub(crate) fn make_urgent(tid: u32) -> bool {
    let urgent = with_priority(1);
    // SAFETY: the parameters are a whole structure of ours, which is only read.
    unsafe { libc::sched_setscheduler(tid.cast_signed(), libc::SCHED_FIFO, &raw const urgent) == 0 }
}

/// Precedence of a stopped thread of another process while it works for us, until this is dropped.
///
/// Should we be killed meanwhile the thread itself has to go back to [`Self::policy`]: it may, as
/// no flag is set that only a privileged one takes back. Children that it makes meanwhile have the
/// same precedence.
#[derive(Debug)]
pub(crate) struct UrgentThread {
    tid: u32,
    policy: i32,
}

impl UrgentThread {
    /// An ordinary policy of a thread, which it can be taken from and given back to.
    pub(crate) fn policy(tid: u32) -> Option<i32> {
        // SAFETY: it only takes a number.
        let policy = unsafe { libc::sched_getscheduler(tid.cast_signed()) };
        matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH).then_some(policy)
    }

    /// `None`: it is as it was.
    pub(crate) fn begin(tid: u32, policy: i32) -> Option<Self> {
        make_urgent(tid).then_some(Self { tid, policy })
    }
}

impl Drop for UrgentThread {
    fn drop(&mut self) {
        let ordinary = with_priority(0);
        // (Its nice value is kept.)
        // SAFETY: the parameters are a whole structure of ours, which is only read.
        unsafe { libc::sched_setscheduler(self.tid.cast_signed(), self.policy, &raw const ordinary) };
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        // Who may have precedence by a limit only (RLIMIT_RTPRIO) may not take the flag back: it
        // says nothing of an ordinary policy.
        if let Some((policy, parameters)) = self.before
            && !set(policy, parameters)
        {
            set(policy | libc::SCHED_RESET_ON_FORK, parameters);
        }
    }
}

/// Parameters of a policy. (musl's have more fields, which Linux does not read.)
fn with_priority(priority: i32) -> libc::sched_param {
    // SAFETY: plain data for which zeros are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    parameters
}

/// Whether it is allowed.
fn set(policy: i32, parameters: libc::sched_param) -> bool {
    // SAFETY: 0: the calling thread; the parameters are a whole structure of ours.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_given_back_its_policy() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            tell.send(crate::ptrace::own_tid()).unwrap();
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap();
        let policy = UrgentThread::policy(tid).unwrap();
        let urgent = UrgentThread::begin(tid, policy);
        assert_eq!(UrgentThread::policy(tid).is_none(), urgent.is_some());
        drop(urgent);
        assert_eq!(UrgentThread::policy(tid), Some(policy));
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn precedence_ends_with_its_value() {
        assert!(!Urgency::is_on());
        let urgency = Urgency::begin();
        assert_eq!(Urgency::is_on(), urgency.before.is_some());
        drop(urgency);
        assert!(!Urgency::is_on());
    }
}
