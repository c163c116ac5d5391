//! JIT code that lies in no module. The kernel's answer about an address's mapping decides whether
//! there is code. Answers are cached.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use crate::modules::memory_map::{self, Access, Place};
use crate::modules::rules;

/// Number of mappings that are remembered; the oldest is replaced.
const KNOWN_MAX: usize = 64;
/// Number of addresses without code that are remembered, by their hash.
const REFUSED_MAX: usize = 256;
/// Number of refusals after which an address is checked with the kernel again. A compiler may make
/// a page non-executable while it writes to it, and may later put code where there was no code.
const REFUSED_FOR: u64 = 64;
const COUNT_SHIFT: u32 = 48;

/// A mapping with code. Each word is written on its own. A reader that sees a mixture may at worst
/// take an address for code that is not. Without this check every address was taken for code.
struct Known {
    low: AtomicUsize,
    high: AtomicUsize,
}

static KNOWN: [Known; KNOWN_MAX] =
    [const { Known { low: AtomicUsize::new(0), high: AtomicUsize::new(0) } }; KNOWN_MAX];
static KNOWN_NEXT: AtomicUsize = AtomicUsize::new(0);
/// Address (low 48 bits), and above it the number of times that it was refused.
static REFUSED: [AtomicU64; REFUSED_MAX] = [const { AtomicU64::new(0) }; REFUSED_MAX];

/// True if there is code at an address that lies in no module, or if the kernel does not answer.
pub(crate) fn is_at(address_avma: usize) -> bool {
    let address = address_avma as u64;
    if address >> COUNT_SHIFT != 0 {
        return false;
    }
    let holds =
        |known: &Known| address_avma < known.high.load(Acquire) && address_avma >= known.low.load(Relaxed);
    if KNOWN.iter().any(holds) {
        return true;
    }
    let Some(refused) = REFUSED.get(rules::hash(address) % REFUSED_MAX) else { return false };
    let before = refused.load(Relaxed);
    let times = before >> COUNT_SHIFT;
    if before & ((1 << COUNT_SHIFT) - 1) == address && times < REFUSED_FOR {
        refused.store(address | times.wrapping_add(1) << COUNT_SHIFT, Relaxed);
        return false;
    }
    match memory_map::place_of(address_avma, Access::Execute) {
        Place::Mapped { low, high } => {
            if let Some(known) = KNOWN.get(KNOWN_NEXT.fetch_add(1, Relaxed) % KNOWN_MAX) {
                known.high.store(0, Release);
                known.low.store(low, Relaxed);
                known.high.store(high, Release);
            }
            true
        }
        Place::Other => {
            refused.store(address, Relaxed);
            false
        }
        Place::Unknown => true,
    }
}

/// Forgets all answers, because code was unloaded and another mapping may lie at an address.
pub(crate) fn forget() {
    KNOWN.iter().for_each(|known| known.high.store(0, Release));
    REFUSED.iter().for_each(|refused| refused.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_executed_is_code_and_what_was_refused_is_asked_about_again() {
        let data = Box::new([0_u8; 64]);
        let address = data.as_ptr() as usize;
        for _ in 0..REFUSED_FOR * 2 + 3 {
            assert!(!is_at(address));
        }
        assert!(is_at(is_at as *const () as usize));
        assert!(!is_at(0) && !is_at(1 << 50) && !is_at(usize::MAX));
    }
}
