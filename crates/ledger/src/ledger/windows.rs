//! Many events at once: what each of them needs of the table, in windows of the stream.
//!
//! Mostly what comes and goes lies near what came and went before: the blocks of a window are
//! applied one after the other (*at once*), and the processor, which foresees most of the jumps,
//! has the loads of the next events on their way before those of this one are there. Where
//! blocks are far from one another the table waits for memory. There a window is applied *ahead*:
//! what is born and dies in it is left out, and all that it needs of the table is loaded together
//! before.

use heapr_trace::{Action, Block, Event, ProcessIndex, StackIndex};

use super::{Ledger, Observer, block_of};
use crate::block_table::Hint;
use crate::short_lives::{ShortLives, WINDOW};

/// Events whose blocks are looked up together: some ten loads are on their way at once, so more
/// gains nothing.
const LOOKED_UP: usize = 64;

/// Blocks are looked up together where more than one of so many is far from those that were looked
/// for last: then the table waits for memory. (Else that takes longer than it saves: of Node's
/// events 20 ns in place of 13, of jq's, with a million and a half live blocks, 24 in place of 17.
/// Blocks that come and go at random among a million take 52 ns so, and 150 one by one.)
const FAR_ONE_OF: usize = if cfg!(test) { WINDOW } else { 2 };

/// Windows whose blocks are looked up together before it is tried again without: at first, and when
/// that has been in vain for long.
const AHEAD: u32 = if cfg!(test) { 1 } else { 2 };
const AHEAD_MAX: u32 = if cfg!(test) { 1 } else { 255 };

impl Ledger {
    /// Applies the next events: what [`Ledger::apply`] does for each, faster.
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

    /// Applies the events of a window to a table that does not lie in the caches: what it needs of
    /// it is loaded before.
    fn apply_ahead(&mut self, window: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        let mut lives = ShortLives::among(window);
        let (asked, asked_count) = lives.asked(window.len());
        let mut asked = &asked[..asked_count];
        // By event: those that are not asked about have none.
        let mut hints = [Hint::NONE; WINDOW];
        let mut begin = 0;
        while begin < window.len() {
            let (together, later) = asked.split_at(LOOKED_UP.min(asked.len()));
            let end = later.first().map_or(window.len(), |&number| usize::from(number));
            self.apply_from((begin, end), together, window, (&mut lives, &mut hints), observer);
            (begin, asked) = (end, later);
        }
    }

    /// Applies the events of a window to a table of which what they need lies in the caches: to
    /// look for short lives would take longer. (So does it to tell the observer of the stacks
    /// that come: 2 to 4 ns an event, unless not even the last cache holds them.)
    #[inline(always)]
    fn apply_at_once(&mut self, window: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        self.blocks.tidy_up();
        for (event, process) in window {
            self.apply_hinted(event, *process, Hint::NONE, (|| false, || None), observer);
        }
    }

    /// Applies the events of a window from `begin` to `end`, of which the table is asked about
    /// those that are `asked`.
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
        // One short loop for each level of the table: the fewer instructions lie between two loads
        // that do not wait for each other, the more of them are on their way at once.
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
        // The loads must happen; what they load is of no interest yet.
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

/// The stack of an event. (Of an allocation it is the one that its block will begin with; that of a
/// free, if it has one, is of no interest, but to ask which of them it is costs more than to look
/// at it.)
#[inline(always)]
fn stack_of(event: &Event) -> StackIndex {
    // All variants have their stack at the same place: a load, without a jump.
    match event.action {
        Action::Alloc { stack, .. }
        | Action::Realloc { stack, .. }
        | Action::Free { stack, .. }
        | Action::Failed { stack, .. } => stack,
    }
}

/// The address that an event looks at first; anything for a failed call, which has none.
#[inline(always)]
fn first_address(event: &Event) -> u64 {
    // As above: one load, without a jump.
    match event.action {
        Action::Alloc { address_avma: word, .. }
        | Action::Free { address_avma: word, .. }
        | Action::Realloc { old_address_avma: word, .. }
        | Action::Failed { size_bytes: word, .. } => word,
    }
}

#[cfg(test)]
mod tests;
