//! Blocks that are born and die within one window of events: these skip the table.
//!
//! ```text
//! event      0        1        2        3        4
//!            free A   alloc A  alloc B  free A   free B
//! known of A          free  ----------> events 1 and 3 are a block's whole life
//! known of B                   unknown: the table must be asked
//! ```
//! If the previous event at the address was a free, no other block is live there (one whose free
//! was lost). If a block is the first at its address in the window, the table is asked, and updated
//! only if it has a block there. Three quarters of redis' events skip the table, half of clang's
//! and Python's, a quarter of jq's, and a tenth of Node's. For a fifth of clang's events the table
//! is only asked.

use heapr_trace::{Action, Event, ProcessIndex};

/// Number of events that are examined together. (With 1,024, clang has a tenth more short lives,
/// and other programs hardly more.)
pub(crate) const WINDOW: usize = 256;

/// Number of hash entries for addresses: four for each event, so that few collide.
const PLACES: usize = 4 * WINDOW;

/// Role of each event of a window in its block's life.
#[derive(Debug)]
pub(crate) struct ShortLives {
    /// Mark of each event.
    marks: [u16; WINDOW],
}

/// Mark of an event that the table must apply.
const ANY: u16 = 0;
/// Mark like [`ANY`] of an event that is the first of the window at its hash entry.
const FIRST: u16 = 1;
/// Mark like [`ANY`] of an event whose predecessor at its address is a free.
const CLEAN: u16 = 2;
/// Mark of a birth whose block ends in the window, at an address that only the table knows:
/// [`FIRST`] with an end.
const ASKED_BIRTH: u16 = FIRST + WITH_END;
/// Mark of a birth whose block ends in the window, at an address without a block: [`CLEAN`] with an
/// end.
const BIRTH: u16 = CLEAN + WITH_END;
const WITH_END: u16 = 2;
/// Mark of the end of the block that was born with event number 0; the following marks belong to
/// the following numbers.
const END: u16 = 5;

fn place(address_avma: u64) -> usize {
    (address_avma.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
}

impl ShortLives {
    /// Examines the first [`WINDOW`] events.
    ///
    /// The cases follow no pattern that a processor could predict: all are computed without
    /// branches. (With a branch for each they took 9 ns per event of a program with threads.)
    #[inline(always)]
    pub(crate) fn among(events: &[(Event, ProcessIndex)]) -> Self {
        let mut marks = [ANY; WINDOW];
        // Number + 1 of the last event at each hash entry; 0 for none.
        let mut last = [0_u16; PLACES];
        for (number, (event, process)) in events.iter().take(WINDOW).enumerate() {
            let (address_avma, is_free) = match event.action {
                Action::Alloc { address_avma, .. } => (address_avma, false),
                Action::Free { address_avma, .. } => (address_avma, true),
                _ => {
                    note_seldom(event, number, &mut last);
                    continue;
                }
            };
            let before = std::mem::replace(&mut last[place(address_avma)], number as u16 + 1);
            let Some(before) = usize::from(before).checked_sub(1) else {
                marks[number] = FIRST;
                continue;
            };
            let Some((event_before, process_before)) = events.get(before) else { continue };
            if process_before != process || event_before.heap != event.heap {
                continue;
            }
            match event_before.action {
                Action::Free { address_avma: same, .. } if same == address_avma && !is_free => {
                    marks[number] = CLEAN;
                }
                Action::Alloc { address_avma: same, .. } if same == address_avma && is_free => {
                    let mark = marks[before % WINDOW];
                    if mark != FIRST && mark != CLEAN {
                        continue;
                    }
                    marks[before % WINDOW] = mark + WITH_END;
                    marks[number] = END + before as u16;
                }
                _ => {}
            }
        }
        Self { marks }
    }

    /// Numbers of the events for which the table is needed, in order, and their count.
    #[inline(always)]
    pub(crate) fn asked(&self, event_count: usize) -> ([u8; WINDOW], usize) {
        let mut asked = [0_u8; WINDOW];
        let mut count = 0;
        for (number, &mark) in self.marks.iter().take(event_count).enumerate() {
            asked[count % WINDOW] = number as u8;
            count += usize::from(mark < BIRTH);
        }
        (asked, count)
    }

    /// Records whether the table has a block at the address of an asked event. If so, the table
    /// must apply the birth of the block, and so its end. (No other event of the window changes the
    /// address before that: the table's present answer is still right then.)
    #[inline(always)]
    pub(crate) fn settle(&mut self, number: u8, is_taken: bool) {
        let mark = &mut self.marks[usize::from(number)];
        let settled = if is_taken { ANY } else { BIRTH };
        *mark = std::hint::select_unpredictable(*mark == ASKED_BIRTH, settled, *mark);
    }

    /// Whether event `number` is a birth that skips the table.
    #[inline(always)]
    pub(crate) fn is_birth(&self, number: usize) -> bool {
        self.marks[number % WINDOW] == BIRTH
    }

    /// Number of the birth of the block that ends with event `number`, if both skip the table.
    #[inline(always)]
    pub(crate) fn birth_of(&self, number: usize) -> Option<usize> {
        let birth = usize::from(self.marks[number % WINDOW].checked_sub(END)?);
        self.is_birth(birth).then_some(birth)
    }
}

/// Records an event that is neither an allocation nor a free: later events at its addresses are not
/// the first there.
#[cold]
#[inline(never)]
fn note_seldom(event: &Event, number: usize, last: &mut [u16; PLACES]) {
    if let Action::Realloc { old_address_avma, address_avma, .. } = event.action {
        last[place(old_address_avma)] = number as u16 + 1;
        last[place(address_avma)] = number as u16 + 1;
    }
}
