//! Blocks that are made and freed among the events that are applied together: they need no place in
//! the table.
//!
//! ```text
//! event      0        1        2        3        4
//!            free A   alloc A  alloc B  free A   free B
//! known of A          free  ----------> 1 and 3 are all of a block's life
//! known of B                   nothing: the table must be asked
//! ```
//! Where the event before them at their address was a free it is known that no other block is live
//! there (one whose free was lost). Where they are the first at their address the table is asked,
//! but told only if there is one. Of redis' events three quarters are left out of it, of clang's
//! and Python's half, of jq's a quarter, of Node's a tenth; and it is only asked for a fifth of
//! clang's.

use heapr_trace::{Action, Event, ProcessIndex};

/// Events that are looked at together. (Of 1,024 a tenth more are short lives in clang, and hardly
/// more elsewhere.)
pub(crate) const WINDOW: usize = 256;

/// Places for addresses: four for each event, so that few meet another one at theirs.
const PLACES: usize = 4 * WINDOW;

/// The parts of a window's events in the lives of blocks.
#[derive(Debug)]
pub(crate) struct ShortLives {
    /// By event.
    marks: [u16; WINDOW],
}

/// The table must be told.
const ANY: u16 = 0;
/// As any; and nothing of the window was at its place before.
const FIRST: u16 = 1;
/// As any; and the event before it at its address was a free.
const CLEAN: u16 = 2;
/// The birth of a block of which the window has the end, at an address of which the table alone
/// knows what is there: a first one with an end.
const ASKED_BIRTH: u16 = FIRST + WITH_END;
/// The same, and nothing is there: a clean one with an end.
const BIRTH: u16 = CLEAN + WITH_END;
const WITH_END: u16 = 2;
/// The end of the block that was born with event number 0, and so on.
const END: u16 = 5;

fn place(address_avma: u64) -> usize {
    (address_avma.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
}

impl ShortLives {
    /// Looks at the first [`WINDOW`] events.
    ///
    /// Which of the cases an event is follows no pattern that a processor could foresee: all are
    /// computed, and no jump depends on them. (With a jump each they took 9 ns an event of a
    /// program with threads.)
    #[inline(always)]
    pub(crate) fn among(events: &[(Event, ProcessIndex)]) -> Self {
        let mut marks = [ANY; WINDOW];
        // The last event at each place, and one; 0 for none.
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

    /// The numbers of the events about which the table must be asked, in order, and how many they
    /// are.
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

    /// Takes note whether something is at the address of an event about which the table was asked:
    /// the birth of a block, and so its end, must be told to the table then. (Nothing else of
    /// the window is at its address before: what the table says now is still so then.)
    #[inline(always)]
    pub(crate) fn settle(&mut self, number: u8, is_taken: bool) {
        let mark = &mut self.marks[usize::from(number)];
        let settled = if is_taken { ANY } else { BIRTH };
        *mark = std::hint::select_unpredictable(*mark == ASKED_BIRTH, settled, *mark);
    }

    /// Whether the table must be told of event `number`, if that is no end.
    #[inline(always)]
    pub(crate) fn is_birth(&self, number: usize) -> bool {
        self.marks[number % WINDOW] == BIRTH
    }

    /// The birth of the block that ends with event `number`, if the table knows of neither.
    #[inline(always)]
    pub(crate) fn birth_of(&self, number: usize) -> Option<usize> {
        let birth = usize::from(self.marks[number % WINDOW].checked_sub(END)?);
        self.is_birth(birth).then_some(birth)
    }
}

/// Takes note of an event that is neither an allocation nor a free: what comes after it at its
/// addresses is not the first there.
#[cold]
#[inline(never)]
fn note_seldom(event: &Event, number: usize, last: &mut [u16; PLACES]) {
    if let Action::Realloc { old_address_avma, address_avma, .. } = event.action {
        last[place(old_address_avma)] = number as u16 + 1;
        last[place(address_avma)] = number as u16 + 1;
    }
}
