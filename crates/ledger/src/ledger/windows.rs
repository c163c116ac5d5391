//! Application of many events at once, in windows of the stream.
//!
//! Usually blocks are near recently used ones. Then the events of a window are applied one after
//! the other (*at once*). The processor predicts most branches, and starts the loads of the next
//! events early. If blocks are far from one another, the table waits for memory. Then a window is
//! applied *ahead*. Blocks that are born and die in it skip the table, and all other needed entries
//! are loaded together beforehand.

use heapr_trace::{Action, Block, Event, ProcessIndex, StackIndex};

use super::{Ledger, Observer, block_of};
use crate::block_table::Hint;
use crate::short_lives::{ShortLives, WINDOW};

/// Number of events whose blocks are looked up together. About ten loads are in flight at once, so
/// that more events gain nothing.
const LOOKED_UP: usize = 64;

/// Blocks are looked up together if more than one event in this many missed the recently used
/// groups.
///
/// Misses mean that the table waits for memory. Without them the ahead method is slower: Node's
/// events take 20 ns instead of 13. Those of jq, with a million and a half live blocks, take 24
/// instead of 17. Blocks that come and go at random among a million take 52 ns with it, and 150
/// without.
const FAR_ONE_OF: usize = if cfg!(test) { WINDOW } else { 2 };

/// Number of windows that are applied ahead before the other method is tried again: at first, and
/// at most after repeated failures.
const AHEAD: u32 = if cfg!(test) { 1 } else { 2 };
const AHEAD_MAX: u32 = if cfg!(test) { 1 } else { 255 };

impl Ledger {
    /// Applies the next events; faster than [`Ledger::apply`] for each.
    #[inline]
    pub fn apply_all(&mut self, events: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        for window in events.chunks(WINDOW) {
            if self.ahead_left > 0 && !self.blocks.is_small() {
                self.ahead_left -= 1;
                self.apply_ahead(window, observer);
                continue;
            }
            let far_count = self.blocks.far_count();
            self.apply_at_once(window, observer);
            let far_count = self.blocks.far_count().wrapping_sub(far_count) as usize;
            let is_far = far_count * FAR_ONE_OF > window.len();
            self.ahead = if is_far { (self.ahead * 2).clamp(AHEAD, AHEAD_MAX) } else { 0 };
            self.ahead_left = self.ahead;
        }
    }

    /// Applies a window to a table outside of the caches: loads the needed entries beforehand.
    fn apply_ahead(&mut self, window: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        let mut lives = ShortLives::among(window);
        let (asked, asked_count) = lives.asked(window.len());
        let mut asked = &asked[..asked_count];
        // Hint of each event; `NONE` unless the table is asked about it.
        let mut hints = [Hint::NONE; WINDOW];
        let mut begin = 0;
        while begin < window.len() {
            let (together, later) = asked.split_at(LOOKED_UP.min(asked.len()));
            let end = later.first().map_or(window.len(), |&number| usize::from(number));
            self.apply_from((begin, end), together, window, (&mut lives, &mut hints), observer);
            (begin, asked) = (end, later);
        }
    }

    /// Applies a window to a table whose needed entries are cached. Searching for short lives would
    /// take longer. (So would announcing stacks to the observer, at 2 to 4 ns per event. It pays
    /// only if not even the last-level cache holds them.)
    #[inline(always)]
    fn apply_at_once(&mut self, window: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        self.blocks.tidy_up();
        for (event, process) in window {
            self.apply_hinted(event, *process, Hint::NONE, (|| false, || None), observer);
        }
    }

    /// Applies the events of a window from `begin` to `end`. `asked` are the numbers of those that
    /// need the table.
    #[inline(always)]
    fn apply_from(
        &mut self,
        (begin, end): (usize, usize),
        asked: &[u8],
        window: &[(Event, ProcessIndex)],
        (lives, hints): (&mut ShortLives, &mut [Hint; WINDOW]),
        observer: &mut impl Observer,
    ) {
        self.blocks.tidy_up();
        let Some(applied) = window.get(begin..end) else { return };
        let stacks = applied.iter().map(|(event, _)| observer.prefetch(stack_of(event)));
        let mut touched = stacks.fold(0, |touched, stack| touched ^ stack);
        let event = |number: u8| &window[usize::from(number)];
        let mut numbers = [0; LOOKED_UP];
        // One short loop for each level of the table. The fewer instructions lie between two
        // independent loads, the more of them are in flight at once.
        for (&number, place) in asked.iter().zip(&mut numbers) {
            let (event, process) = event(number);
            *place = self.blocks.place(*process, event.heap, first_address(event));
        }
        for (&number, &place) in asked.iter().zip(&numbers) {
            hints[usize::from(number)] = self.blocks.hint_in(place, first_address(&event(number).0));
        }
        for &number in asked {
            touched ^= u64::from(self.blocks.touch(hints[usize::from(number)]));
        }
        for (&number, record) in asked.iter().zip(&mut numbers) {
            *record = self.blocks.prefetch(hints[usize::from(number)], first_address(&event(number).0));
        }
        for (&number, &record) in asked.iter().zip(&numbers) {
            lives.settle(number, record != 0);
            touched ^= observer.prefetch(self.blocks.stack_of(record));
        }
        // The loads must happen; their results do not matter yet.
        std::hint::black_box(touched);
        for (number, (event, process)) in (begin..end).zip(applied) {
            let hint = hints[number % WINDOW];
            let birth = || lives.birth_of(number).and_then(|birth| window.get(birth)).and_then(allocated);
            let is_birth = || lives.is_birth(number);
            self.apply_hinted(event, *process, hint, (is_birth, birth), observer);
        }
    }
}

/// The block that begins with an allocation.
#[inline(always)]
fn allocated((event, process): &(Event, ProcessIndex)) -> Option<Block> {
    let Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc } = event.action else {
        return None;
    };
    Some(block_of(event, *process, address_avma, size_bytes, stack, is_moved_realloc))
}

/// The stack of an event. (The observer needs it only for allocations. But distinguishing frees
/// would cost more than loading the stack of a free.)
#[inline(always)]
fn stack_of(event: &Event) -> StackIndex {
    // All variants have their stack at the same offset: a load without a branch.
    match event.action {
        Action::Alloc { stack, .. }
        | Action::Realloc { stack, .. }
        | Action::Free { stack, .. }
        | Action::Failed { stack, .. } => stack,
    }
}

/// The first address that an event needs in the table; arbitrary for a failed call.
#[inline(always)]
fn first_address(event: &Event) -> u64 {
    // One load without a branch, as in `stack_of`.
    match event.action {
        Action::Alloc { address_avma: word, .. }
        | Action::Free { address_avma: word, .. }
        | Action::Realloc { old_address_avma: word, .. }
        | Action::Failed { size_bytes: word, .. } => word,
    }
}

#[cfg(test)]
mod tests;
