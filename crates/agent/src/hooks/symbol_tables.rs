//! Changed symbol tables: a lookup of a module's function gives another function.
//!
//! ```text
//! dlsym(handle, "malloc") --> the module's table: malloc = trampoline
//! trampoline --> hook --> the module's malloc
//! ```
//! Calls that were bound before are unchanged. The former value of each entry is saved for an
//! injector that comes later.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_ring::pages::{page_begin, page_end};
use heapr_ring::sys;
use heapr_wire::REDIRECTED_MAX;

use crate::modules::dynamic_section::{Dynamic, Symbol};
use crate::modules::link_map::DlPhdrInfo;

const WRITE: usize = 2;
const STT_FUNC: u8 = 2;

/// Address of each changed entry's value, and the former value, for the injector; 0: unused.
pub(crate) static REDIRECTED: [[AtomicUsize; 2]; REDIRECTED_MAX] =
    [const { [const { AtomicUsize::new(0) }; 2] }; REDIRECTED_MAX];

/// Receiver of a function's name and new address.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&[u8], usize);

/// Makes a module's symbol table give other addresses for functions. `targets` is called twice,
/// each time with all of them.
pub(crate) fn redirect(info: &DlPhdrInfo, dynamic: &Dynamic, targets: &dyn Fn(Take<'_>)) {
    let (mut first, mut last) = (usize::MAX, 0);
    targets(&mut |name, target| {
        if let Some(place) = place_to_change(info, dynamic, name, target) {
            first = first.min(place);
            last = last.max(place);
        }
    });
    if first > last {
        return;
    }
    // Older linkers put the table beside code: executable pages stay executable.
    let protections = (info.protection_of(first), info.protection_of(last));
    let (Some(protection), Some(_)) = protections else { return };
    if protections.0 != protections.1 {
        return;
    }
    let start = page_begin(first);
    let bytes = page_end(last.wrapping_add(1)).wrapping_sub(start);
    // SAFETY: pages of one segment of the module, which stay as readable and executable as they
    // are.
    if unsafe { sys::protect(start, bytes, protection | WRITE) }.is_err() {
        return;
    }
    targets(&mut |name, target| {
        if let Some(place) = place_to_change(info, dynamic, name, target)
            && (start..start.wrapping_add(bytes)).contains(&place)
        {
            // SAFETY: an aligned word of the module's table, which is writable at this point.
            let value = unsafe { &*(place as *const AtomicUsize) };
            if keep(place, value.load(Relaxed)) {
                // A concurrent lookup finds one of the two functions.
                value.store(target.wrapping_sub(info.bias), Release);
            }
        }
    });
    // SAFETY: as above; the protection is the loader's.
    let _ = unsafe { sys::protect(start, bytes, protection) };
}

/// Returns the address of a function's value in the table, if it must be changed.
fn place_to_change(info: &DlPhdrInfo, dynamic: &Dynamic, name: &[u8], target: usize) -> Option<usize> {
    let entry = dynamic.find_entry(name)?;
    // SAFETY: an entry of the module's symbol table.
    let symbol: Symbol = unsafe { entry.read() };
    let is_function = symbol.info & 15 == STT_FUNC;
    // SAFETY: a field of the entry above.
    let place = unsafe { &raw const (*entry).value } as usize;
    (is_function && symbol.value != target.wrapping_sub(info.bias) && place & 7 == 0).then_some(place)
}

/// Saves the first value of an entry. Returns `false` if there is no room, and the entry must not
/// be changed.
fn keep(place: usize, value: usize) -> bool {
    REDIRECTED.iter().any(|[known, before]| {
        let now = known.load(Acquire);
        if now == place {
            return true;
        }
        if now != 0 || known.compare_exchange(0, place, AcqRel, Relaxed).is_err() {
            return false;
        }
        before.store(value, Release);
        true
    })
}
