//! The scheduler's clock of one processor, by which the kernel states when a thread last ran.

use std::mem::{size_of, zeroed};

use heapr_proc::LastRun;

use crate::ptrace::own_tid;

/// Present time in milliseconds; `None` if this thread may not run on the processor, or the kernel
/// does not state the time.
///
/// The processors' clocks may differ by the time that a hypervisor has taken from each. The calling
/// thread thus moves to the processor for a moment.
pub(crate) fn processor_clock_ms(processor: usize) -> Option<f64> {
    // SAFETY: a set of processors is plain bits; zeros are the empty set.
    let (mut before, mut wanted): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { (zeroed(), zeroed()) };
    let bytes = size_of::<libc::cpu_set_t>();
    if processor >= bytes * 8 {
        return None;
    }
    // SAFETY: 0 is the calling thread; both are complete sets of this function, and the number fits
    // into them.
    let is_there = unsafe {
        libc::CPU_SET(processor, &mut wanted);
        libc::sched_getaffinity(0, bytes, &raw mut before) == 0
            && libc::sched_setaffinity(0, bytes, &raw const wanted) == 0
    };
    if !is_there {
        return None;
    }
    // The thread has just begun to run there.
    let clock_ms = LastRun::of(std::process::id(), own_tid()).map(|run| run.clock_ms);
    // SAFETY: as above.
    let _ = unsafe { libc::sched_setaffinity(0, bytes, &raw const before) };
    clock_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_on_and_the_thread_may_run_where_it_might() {
        // SAFETY: the function has no arguments.
        let here = unsafe { libc::sched_getcpu() }.cast_unsigned() as usize;
        let allowed = std::thread::available_parallelism().unwrap();
        let (first, second) = (processor_clock_ms(here), processor_clock_ms(here));
        assert!(first.zip(second).is_none_or(|(first, second)| second >= first));
        assert!(processor_clock_ms(usize::MAX).is_none());
        assert_eq!(std::thread::available_parallelism().unwrap(), allowed);
    }
}
