//! Resident bytes of native blocks.
//!
//! A page that was read and never written shows the kernel's page of zeros. It is present, and not
//! resident. A page that a fork shares looks the same. The resident bytes of the piece of memory
//! around say how many of both are shared ones.

use std::cell::OnceCell;

use heapr_proc::{PageMap, page_bytes};
use heapr_resident::{Account, Class, PageStates};

/// Least size in bytes of a block whose pages are asked for: most of a smaller one is written.
const LARGE_BYTES: u64 = 4 << 10;
/// Largest number of pages of one question.
const PAGES_MAX: u64 = 1 << 16;
/// Largest number of pages of a block, or of the piece around it, that are asked for: a program may
/// reserve terabytes.
const ALL_PAGES_MAX: u64 = 1 << 24;

/// Pieces of a process's memory, by address.
pub(super) struct Pieces<'a> {
    states: Option<&'a PageMap>,
    all: Vec<Piece>,
}

struct Piece {
    start_avma: u64,
    end_avma: u64,
    class: Class,
    rss_bytes: u64,
    /// Bytes of shared pages that are resident, and of all shared pages.
    shared: OnceCell<(u64, u64)>,
}

impl<'a> Pieces<'a> {
    /// Pieces of an account. `states`: the states of the process's pages, if they can be read.
    pub(super) fn of(account: &Account, states: Option<&'a PageMap>) -> Self {
        let mut all: Vec<Piece> = account
            .pieces
            .iter()
            .map(|piece| Piece {
                start_avma: piece.range_avma.start,
                end_avma: piece.range_avma.end,
                class: piece.class,
                rss_bytes: piece.pages.rss_bytes,
                shared: OnceCell::new(),
            })
            .collect();
        all.sort_unstable_by_key(|piece| (piece.start_avma, piece.end_avma));
        Self { states, all }
    }

    fn at(&self, address_avma: u64) -> Option<&Piece> {
        let behind = self.all.partition_point(|piece| piece.start_avma <= address_avma);
        self.all.get(behind.checked_sub(1)?).filter(|piece| address_avma < piece.end_avma)
    }

    /// Class of the memory at an address.
    pub(super) fn class_at(&self, address_avma: u64) -> Option<Class> {
        self.at(address_avma).map(|piece| piece.class)
    }

    /// Resident bytes of a block.
    pub(super) fn resident(&self, start_avma: u64, byte_count: u64) -> u64 {
        let (Some(states), true) = (self.states, byte_count >= LARGE_BYTES) else { return byte_count };
        let end_avma = start_avma.saturating_add(byte_count);
        let Some((own, shared)) = bytes_of_pages(states, start_avma, end_avma) else { return byte_count };
        let part = match self.at(start_avma) {
            Some(piece) if shared > 0 => {
                let (resident, all) = *piece.shared.get_or_init(|| piece.shared_bytes(states));
                // Without shared pages in the piece, those of the block have come since.
                u128::from(shared).saturating_mul(resident.into()).checked_div(all.into()).unwrap_or(0) as u64
            }
            _ => shared,
        };
        own + part
    }
}

impl Piece {
    /// Bytes of the piece's shared pages that are resident, and of all of them.
    fn shared_bytes(&self, states: &PageMap) -> (u64, u64) {
        match bytes_of_pages(states, self.start_avma, self.end_avma) {
            Some((own, shared)) => (self.rss_bytes.saturating_sub(own).min(shared), shared),
            None => (1, 1),
        }
    }
}

/// Bytes of a range in present pages that are its process's own, and in other present pages. `None`
/// if the pages cannot be read, or are too many.
fn bytes_of_pages(states: &PageMap, start_avma: u64, end_avma: u64) -> Option<(u64, u64)> {
    if end_avma.saturating_sub(start_avma) / page_bytes() > ALL_PAGES_MAX {
        return None;
    }
    let (mut own, mut shared) = (0_u64, 0_u64);
    let mut first_avma = start_avma / page_bytes() * page_bytes();
    while first_avma < end_avma {
        let count = (end_avma - first_avma).div_ceil(page_bytes()).min(PAGES_MAX);
        let found = PageStates::pages(states, first_avma, count as usize)?;
        for (number, state) in (0..).zip(found).filter(|(_, state)| state.is_present()) {
            let page_avma = first_avma + number * page_bytes();
            let bytes = page_avma.saturating_add(page_bytes()).min(end_avma) - page_avma.max(start_avma);
            *(if state.is_exclusive() { &mut own } else { &mut shared }) += bytes;
        }
        first_avma = first_avma.saturating_add(count * page_bytes());
    }
    Some((own, shared))
}
