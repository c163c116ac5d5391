//! The evaluating function of an interpreter whose module does not export it. Its range is learned
//! from a stack.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::frame::Frame;
use crate::modules;
use crate::modules::memory_map::{Access, Place, place_of};

/// The range, and the number of times that it was learned.
#[derive(Debug)]
pub(super) struct Learned {
    low: AtomicUsize,
    high: AtomicUsize,
    times: AtomicUsize,
}

impl Learned {
    pub(super) const fn new() -> Self {
        Self { low: AtomicUsize::new(0), high: AtomicUsize::new(0), times: AtomicUsize::new(0) }
    }

    /// Returns begin and end of the function; (0, 0) until a stack has shown it.
    pub(super) fn range(&self) -> (usize, usize) {
        (self.low.load(Relaxed), self.high.load(Relaxed))
    }

    /// Returns the number of times that it was learned: frames cached before are invalid after
    /// each.
    pub(super) fn times(&self) -> usize {
        self.times.load(Relaxed)
    }

    /// Learns the function from a stack. It is the largest of the functions in the code around
    /// `inside`, because it has a part for each instruction. It is called once for each run of
    /// frames.
    pub(super) fn learn(&self, natives: &[Frame], runs: usize, inside: usize) {
        let calls_in = |(low, high): (usize, usize)| {
            natives.iter().filter(|frame| frame.pc > low && frame.pc <= high).count()
        };
        if calls_in(self.range()) != 0 {
            return;
        }
        let Place::Mapped { low, high } = place_of(inside, Access::Read) else { return };
        let functions = natives.iter().filter_map(|frame| {
            let call = frame.pc.wrapping_sub(1);
            if !(low..high).contains(&call) {
                return None;
            }
            modules::unwind_tables(call)?.function(call)
        });
        let of_all_runs = functions.filter(|&function| calls_in(function) == runs);
        if let Some((low, high)) = of_all_runs.max_by_key(|(low, high)| high.wrapping_sub(*low)) {
            self.low.store(low, Relaxed);
            self.high.store(high, Relaxed);
            self.times.fetch_add(1, Relaxed);
        }
    }
}
