//! Blocks that are made and freed among the events that are applied together: they need no place in the table.
//!
//! ```text
//! event      0        1        2        3        4
//!            free A   alloc A  alloc B  free A   free B
//! known of A          free  ----------> 1 and 3 are all of a block's life
//! known of B                   nothing: the table must be asked
//! ```
//! Where the event before them at their address was a free it is known that no other block is live there (one whose free was
//! lost). Where they are the first at their address the table is asked, but told only if there is one. Of redis' events three quarters are
//! left out of it, of clang's and Python's half, of jq's a quarter, of Node's a tenth; and it is only asked for a fifth of clang's.

use heapr_trace::{Action, Event, ProcessIndex};

/// Events that are looked at together. (Of 1,024 a tenth more are short lives in clang, and hardly more elsewhere.)
pub(crate) const WINDOW: usize = 256;

/// Places for addresses: four for each event, so that few meet another one at theirs.
const PLACES: usize = 4 * WINDOW;

/// What an event of a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The table must be told.
    Any,
    /// The birth of a block of which the window has the end, at an address of which the table alone knows what is there.
    AskedBirth,
    /// The same, and nothing is there.
    Birth,
    /// The end of the block that was born with this event.
    End(usize),
}

/// The parts of a window's events.
#[derive(Debug)]
pub(crate) struct ShortLives {
    /// By event.
    marks: [u16; WINDOW],
}

const ANY: u16 = 0;
/// As any; and nothing of the window was at its place before.
const FIRST: u16 = 1;
/// As any; and the event before it at its address was a free.
const CLEAN: u16 = 2;
const ASKED_BIRTH: u16 = 3;
const BIRTH: u16 = 4;
/// The end of the block that was born with event number 0, and so on.
const END: u16 = 5;

/// In place of an event's number: something was at the place.
const UNKNOWN: u16 = u16::MAX;

fn place(address_avma: u64) -> usize {
    (address_avma.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
}

impl ShortLives {
    /// Looks at the first [`WINDOW`] events.
    #[inline(always)]
    pub(crate) fn among(events: &[(Event, ProcessIndex)]) -> Self {
        let mut marks = [ANY; WINDOW];
        // The last event at each place, and one; 0 for none.
        let mut last = [0_u16; PLACES];
        for (number, (event, process)) in events.iter().take(WINDOW).enumerate() {
            let (address_avma, is_free) = match event.action {
                Action::Alloc { address_avma, .. } => (address_avma, false),
                Action::Free { address_avma, .. } => (address_avma, true),
                Action::Realloc { old_address_avma, address_avma, .. } => {
                    last[place(old_address_avma)] = UNKNOWN;
                    last[place(address_avma)] = UNKNOWN;
                    continue;
                }
                Action::Failed { .. } => continue,
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
                    marks[before] = match marks[before] {
                        CLEAN => BIRTH,
                        FIRST => ASKED_BIRTH,
                        _ => continue,
                    };
                    marks[number] = END + before as u16;
                }
                _ => {}
            }
        }
        Self { marks }
    }

    /// What event `number` of the window is.
    #[inline(always)]
    pub(crate) fn part(&self, number: usize) -> Part {
        match self.marks[number % WINDOW] {
            ANY..=CLEAN => Part::Any,
            ASKED_BIRTH => Part::AskedBirth,
            BIRTH => Part::Birth,
            end => Part::End(usize::from(end - END)),
        }
    }

    /// Whether the table must be asked about event `number`.
    #[inline(always)]
    pub(crate) fn is_asked(&self, number: usize) -> bool {
        self.marks[number % WINDOW] < BIRTH
    }

    /// Takes note whether the table must be told of an asked birth, and so of its end.
    #[inline(always)]
    pub(crate) fn settle(&mut self, number: usize, is_told: bool) {
        self.marks[number % WINDOW] = if is_told { ANY } else { BIRTH };
    }
}
