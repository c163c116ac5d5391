//! The functions of a language that the recorder knows: numbers by the hash of a function's name,
//! file and line. A function that the program makes again and again has one number.
//!
//! The table is shared by the threads and insert-only. A forked child finds it empty, and so
//! announces the functions to its own recorder's entry anew.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use heapr_ring::sys;

use crate::record::events::{self, LanguageFunction};
use crate::record::thread::Scope;

/// Largest number of functions of a process that get a number. (Functions that are code of the
/// program, made once, are some thousands.)
const CAPACITY: usize = 1 << 20;
/// Number of entries that are probed for a hash.
const PLACES: usize = 64;

static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

/// A function's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    /// Whether the number is new: then the caller must tell the recorder.
    pub(crate) is_new: bool,
}

fn entries() -> Option<&'static [AtomicU64]> {
    let mut table = TABLE.load(Acquire);
    if table.is_null() {
        let fresh = sys::map_anonymous(CAPACITY.wrapping_mul(8), true).ok()?.cast::<AtomicU64>();
        match TABLE.compare_exchange(core::ptr::null_mut(), fresh, AcqRel, Acquire) {
            Ok(_) => table = fresh,
            Err(other) => {
                // SAFETY: the mapping made above, which no other thread has seen.
                unsafe { sys::unmap(fresh.cast(), CAPACITY.wrapping_mul(8)) };
                table = other;
            }
        }
    }
    // SAFETY: mapped for [`CAPACITY`] zeroed words, never unmapped.
    Some(unsafe { core::slice::from_raw_parts(table, CAPACITY) })
}

/// Returns the number of the function with this hash; `None` if the table is full.
pub(crate) fn number(hash: u64) -> Option<Numbered> {
    let entries = entries()?;
    let wanted = hash | 1;
    for away in 0..PLACES {
        let place = ((hash >> 20) as usize).wrapping_add(away) % CAPACITY;
        let entry = entries.get(place)?;
        let found = match entry.load(Acquire) {
            0 => entry.compare_exchange(0, wanted, AcqRel, Acquire).err().unwrap_or(0),
            known => known,
        };
        if found == 0 || found == wanted {
            return Some(Numbered { number: (place as u32).wrapping_add(1), is_new: found == 0 });
        }
    }
    None
}

/// Returns the number of a function, and announces a new one to the recorder. Returns 0 if there
/// are too many.
pub(crate) fn number_of(
    scope: &mut Scope,
    language: u8,
    (name, file, first_line): (&[u8], &[u8], u32),
) -> u32 {
    let seed = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(language) << 56 ^ u64::from(first_line);
    let bytes = name.iter().chain(&[0]).chain(file);
    let hash = bytes.fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    match number(hash ^ hash >> 32) {
        Some(Numbered { number, is_new }) => {
            if is_new {
                let function = LanguageFunction { language, number, first_line, name, file };
                events::language_function(scope, &function);
            }
            number
        }
        None => 0,
    }
}
