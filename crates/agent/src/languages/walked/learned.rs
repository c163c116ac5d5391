//! The evaluating function of an interpreter whose module does not say where it is, once a stack
//! has shown it.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::frame::Frame;
use crate::modules;
use crate::modules::memory_map::{Access, Place, place_of};

/// See the module.
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

    /// Where it begins and ends; nowhere, as long as no stack has shown it.
    pub(super) fn range(&self) -> (usize, usize) {
        (self.low.load(Relaxed), self.high.load(Relaxed))
    }

    /// How often it was found: what was kept before says nothing then.
    pub(super) fn times(&self) -> usize {
        self.times.load(Relaxed)
    }

    /// It is the largest of the functions on the stack that lie in the code around `inside`, as it
    /// has a part for each instruction there is, and is called once for each run of frames.
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
