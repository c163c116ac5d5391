//! Changed tables of symbols: who asks the loader for a function of a module is given another.
//!
//! ```text
//! dlsym(handle, "malloc") --> the module's table: malloc = trampoline --> hook --> the module's malloc
//! ```
//! What was bound before stays so. What each entry held is kept for an injector that comes later.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::REDIRECTED_MAX;

use crate::modules::dynamic_section::{Dynamic, Symbol};
use crate::modules::link_map::DlPhdrInfo;

const PAGE_BYTES: usize = 4096;
const WRITE: usize = 2;
const STT_FUNC: u8 = 2;

/// For the injector: where the value of a changed entry lies, and what it was; 0: none.
pub(crate) static REDIRECTED: [[AtomicUsize; 2]; REDIRECTED_MAX] =
    [const { [const { AtomicUsize::new(0) }; 2] }; REDIRECTED_MAX];

/// Takes a function's name, and where it is from now on.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&[u8], usize);

/// Has a module's table of symbols say that functions are elsewhere. `targets` is asked twice for
/// all of them.
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
    // Older linkers put the table beside code: what is executable stays so.
    let protections = (info.protection_of(first), info.protection_of(last));
    let (Some(protection), Some(_)) = protections else { return };
    if protections.0 != protections.1 {
        return;
    }
    let start = first & !PAGE_BYTES.wrapping_sub(1);
    let bytes = (last | PAGE_BYTES.wrapping_sub(1)).wrapping_add(1).wrapping_sub(start);
    // SAFETY: pages of one segment of the module, which stay as readable and executable as they
    // are.
    if unsafe { sys::protect(start, bytes, protection | WRITE) }.is_err() {
        return;
    }
    targets(&mut |name, target| {
        if let Some(place) = place_to_change(info, dynamic, name, target)
            && (start..start.wrapping_add(bytes)).contains(&place)
        {
            // SAFETY: an aligned word of the module's table, which is writable now.
            let value = unsafe { &*(place as *const AtomicUsize) };
            if keep(place, value.load(Relaxed)) {
                // Who looks the symbol up meanwhile finds one of the two functions.
                value.store(target.wrapping_sub(info.bias), Release);
            }
        }
    });
    // SAFETY: as above; as the loader has mapped them.
    let _ = unsafe { sys::protect(start, bytes, protection) };
}

/// Where the table holds a function's value, if that is to be changed.
fn place_to_change(info: &DlPhdrInfo, dynamic: &Dynamic, name: &[u8], target: usize) -> Option<usize> {
    let entry = dynamic.find_entry(name)?;
    // SAFETY: an entry of the module's table of symbols.
    let symbol: Symbol = unsafe { entry.read() };
    let is_function = symbol.info & 15 == STT_FUNC;
    // SAFETY: a field of the entry above.
    let place = unsafe { &raw const (*entry).value } as usize;
    (is_function && symbol.value != target.wrapping_sub(info.bias) && place & 7 == 0).then_some(place)
}

/// Remembers what an entry held first; `false`: there is no room, and it is to stay.
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
