//! Priority of the thread that stops a target over the target's threads.
//!
//! A program with more running threads than processors fills the run queue. Without priority, each
//! resumed thread takes the processor from the thread that resumes them, and the last one waits
//! until all others have run. With 64 threads on two processors that made a pause of 72 ms, of
//! which 38 were work.

/// Priority of the calling thread over others, as far as permitted (as root), until dropped. Must
/// be dropped in the same thread.
///
/// It is the lowest real-time priority. Nice values count only among the threads of one terminal
/// session, and give a resumed thread a time slice first. On the same machine the pause is 42 ms
/// with the first nice value, 38 with this.
#[derive(Debug)]
pub(crate) struct Urgency {
    /// Policy and its parameters before; `None` if nothing was changed.
    before: Option<(i32, libc::sched_param)>,
    /// Not sendable: dropping it in another thread would change that thread.
    _of_thread: std::marker::PhantomData<*const ()>,
}

impl Urgency {
    pub(crate) fn begin() -> Self {
        let _of_thread = std::marker::PhantomData;
        let mut parameters = with_priority(0);
        // SAFETY: 0 is the calling thread; the parameters are a whole local structure.
        let (policy, is_known) =
            unsafe { (libc::sched_getscheduler(0), libc::sched_getparam(0, &raw mut parameters) == 0) };
        let is_ordinary = matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE);
        // A policy that was set from outside is left alone.
        if !is_known || !is_ordinary {
            return Self { before: None, _of_thread };
        }
        let urgent = with_priority(1);
        let before =
            set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, urgent).then_some((policy, parameters));
        Self { before, _of_thread }
    }

    /// True if the calling thread precedes all ordinary ones, so that it must sleep to let them run
    /// on its processor.
    pub(crate) fn is_on() -> bool {
        // SAFETY: 0 is the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR)
    }
}

/// Gives priority to a process that this one has created and will end, as far as permitted. Returns
/// whether it has it.
pub(crate) fn make_urgent(tid: u32) -> bool {
    let urgent = with_priority(1);
    // SAFETY: the parameters are a whole local structure, which is only read.
    unsafe { libc::sched_setscheduler(tid.cast_signed(), libc::SCHED_FIFO, &raw const urgent) == 0 }
}

/// Priority of a stopped thread of another process while it is borrowed, until dropped.
///
/// If this process is killed meanwhile, the thread itself must return to [`Self::policy`]. It may,
/// because no flag is set that only a privileged process can clear. Children that it creates
/// meanwhile have the same priority.
#[derive(Debug)]
pub(crate) struct UrgentThread {
    tid: u32,
    policy: i32,
}

impl UrgentThread {
    /// Policy of a thread, if it is an ordinary one that can be changed and restored.
    pub(crate) fn policy(tid: u32) -> Option<i32> {
        // SAFETY: the call takes only a number.
        let policy = unsafe { libc::sched_getscheduler(tid.cast_signed()) };
        matches!(policy, libc::SCHED_OTHER | libc::SCHED_BATCH).then_some(policy)
    }

    /// Gives the thread priority; `None` if that is not permitted.
    pub(crate) fn begin(tid: u32, policy: i32) -> Option<Self> {
        make_urgent(tid).then_some(Self { tid, policy })
    }
}

impl Drop for UrgentThread {
    fn drop(&mut self) {
        let ordinary = with_priority(0);
        // The nice value is unchanged.
        // SAFETY: the parameters are a whole local structure, which is only read.
        unsafe { libc::sched_setscheduler(self.tid.cast_signed(), self.policy, &raw const ordinary) };
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        // A process with priority by a limit only (RLIMIT_RTPRIO) may not clear the flag, which has
        // no effect on an ordinary policy.
        if let Some((policy, parameters)) = self.before
            && !set(policy, parameters)
        {
            set(policy | libc::SCHED_RESET_ON_FORK, parameters);
        }
    }
}

/// Parameters of a policy. (musl's structure has more fields, which Linux does not read.)
fn with_priority(priority: i32) -> libc::sched_param {
    // SAFETY: plain data for which zeros are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    parameters
}

/// Sets the calling thread's policy; returns whether it is permitted.
fn set(policy: i32, parameters: libc::sched_param) -> bool {
    // SAFETY: 0 is the calling thread; the parameters are a whole local structure.
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
