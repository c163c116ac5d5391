//! The records that nearly all are, taken many at a time: an allocation or a free of the program's main heap, in its time, while no
//! realloc is under way.
//!
//! What this does is what `translate` does with the same records; that handles every case, and this hands on to it whatever is
//! not plain. (Half of the time between the buffers and the ledger went into finding out, record by record, that nothing was
//! special.)

use std::sync::atomic::Ordering::Relaxed;

use heapr_trace::{Action, Event, HeapId, StackIndex, ThreadIndex};
use heapr_wire::{RecordKind, TICKS_MASK};

use crate::clock::Clock;
use crate::merge::{Head, frees_first};
use crate::process_state::ProcessState;
use crate::sink::Sink;

const ALLOC: u64 = RecordKind::Alloc as u64;
const FREE: u64 = RecordKind::Free as u64;
const ALLOC_WORDS: usize = RecordKind::Alloc.words();
const FREE_WORDS: usize = RecordKind::Free.words();

/// Up to where records may be taken, and whose they are.
pub(crate) struct Plain<'a> {
    /// Another stream's next record.
    pub(crate) until: (u64, bool),
    pub(crate) watermark: u64,
    pub(crate) thread: ThreadIndex,
    pub(crate) clock: &'a Clock,
}

/// How far that went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) words: usize,
    pub(crate) last_ticks: u64,
}

impl Plain<'_> {
    /// Takes plain records from `head` on: none if that is not one.
    #[inline]
    pub(crate) fn take(&self, head: &Head<'_>, process: &ProcessState, sink: &mut Sink) -> Taken {
        let mut taken = Taken::default();
        if !process.reallocs.is_empty() {
            return taken;
        }
        let mut rest = head.words;
        // A record shorter than the words that are looked at stands at the end of what is published.
        while let [first, place, ..] = rest {
            let word0 = first.load(Relaxed);
            let ticks = word0 & TICKS_MASK;
            let kind = word0 >> RecordKind::SHIFT;
            let time_ns = self.clock.ns(ticks);
            let is_in_time = ticks <= self.watermark && (ticks, !frees_first(word0)) <= self.until;
            if !is_in_time || time_ns < sink.last_ns {
                break;
            }
            let address_avma = place.load(Relaxed);
            // The heap's number stands above the address; 0 is the program's main heap.
            if address_avma >> 56 != 0 {
                break;
            }
            let (action, words) = match (kind, rest.get(2)) {
                (FREE, _) => {
                    let stack = StackIndex::EMPTY;
                    (Action::Free { address_avma, stack, is_moved_realloc: false }, FREE_WORDS)
                }
                (ALLOC, Some(packed)) => {
                    let packed = packed.load(Relaxed);
                    let Some(stack) = process.known_stack(packed as u32) else { break };
                    let size_bytes = packed >> 32;
                    (Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }, ALLOC_WORDS)
                }
                _ => break,
            };
            sink.event(&Event { time_ns, thread: self.thread, heap: HeapId::MALLOC, action }, process.index);
            taken = Taken { words: taken.words + words, last_ticks: ticks };
            rest = rest.get(words..).unwrap_or_default();
        }
        taken
    }
}
