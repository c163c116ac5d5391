//! The process's mappings according to the kernel, for addresses that may be arbitrary values of
//! the program.

use heapr_ring::sys;

use crate::arch::ADDRESS_END;
use crate::state::own_stack;

/// Access that a mapping must allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading.
    Read,
    /// Reading and writing, as for a stack.
    Write,
    /// Execution.
    Execute,
}

/// The kernel's answer for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The address lies in the mapping `low..high`, which allows the requested access.
    Mapped { low: usize, high: usize },
    /// No mapping at the address allows the requested access.
    Other,
    /// The kernel does not answer, or may not be asked.
    Unknown,
}

/// Errors of [`sys::query_mapping`].
const ENOENT: i32 = 2;
const ENOTTY: i32 = 25;

/// Looks up the mapping at an address.
#[cold]
#[inline(never)]
pub(crate) fn place_of(address: usize, access: Access) -> Place {
    if address >= ADDRESS_END { Place::Other } else { own_stack::run(|| asked_of_kernel(address, access)) }
}

fn asked_of_kernel(address: usize, access: Access) -> Place {
    let Ok(maps) = sys::open(b"/proc/self/maps\0", false) else { return Place::Unknown };
    let wanted = match access {
        Access::Read => sys::MAPPING_READABLE,
        Access::Write => sys::MAPPING_READABLE | sys::MAPPING_WRITABLE,
        Access::Execute => sys::MAPPING_EXECUTABLE,
    };
    match sys::query_mapping(&maps, address, wanted) {
        Ok((low, high)) => Place::Mapped { low, high },
        Err(ENOENT) => Place::Other,
        Err(ENOTTY) => search(&maps, address, access),
        Err(_) => Place::Unknown,
    }
}

/// Position of the search in a line of the kernel's list.
enum Field {
    Low,
    High,
    /// The permissions, `rwxp`: number of letters read, and whether all requested ones were set so
    /// far.
    Permissions(usize, bool),
    Rest,
}

/// Reads `low-high rwxp …` lines until one holds `address`.
fn search(maps: &sys::Descriptor, address: usize, access: Access) -> Place {
    let wanted: &[u8] = match access {
        Access::Read => b"r..",
        Access::Write => b"rw.",
        Access::Execute => b"..x",
    };
    let mut chunk = [0_u8; 512];
    let (mut low, mut high) = (0_usize, 0_usize);
    let mut field = Field::Low;
    loop {
        let count = match sys::read(maps, &mut chunk) {
            Ok(0) => return Place::Other,
            Ok(count) => count,
            Err(sys::EINTR) => continue,
            Err(_) => return Place::Unknown,
        };
        for &byte in chunk.get(..count).unwrap_or_default() {
            field = match (field, byte) {
                (_, b'\n') => {
                    (low, high) = (0, 0);
                    Field::Low
                }
                (Field::Low, b'-') => Field::High,
                (Field::High, b' ') => Field::Permissions(0, true),
                (Field::Low, digit) => {
                    low = low.wrapping_shl(4) | digit_value(digit);
                    Field::Low
                }
                (Field::High, digit) => {
                    high = high.wrapping_shl(4) | digit_value(digit);
                    Field::High
                }
                (Field::Permissions(letters, is_allowed), letter) => {
                    let is_allowed = is_allowed
                        && wanted.get(letters).is_none_or(|&wanted| wanted == b'.' || wanted == letter);
                    if letters < 2 {
                        Field::Permissions(letters.wrapping_add(1), is_allowed)
                    } else if address >= low && address < high {
                        return if is_allowed { Place::Mapped { low, high } } else { Place::Other };
                    } else {
                        Field::Rest
                    }
                }
                (Field::Rest, _) => Field::Rest,
            };
        }
    }
}

fn digit_value(digit: u8) -> usize {
    let value = match digit {
        b'0'..=b'9' => digit.wrapping_sub(b'0'),
        _ => digit.wrapping_sub(b'a').wrapping_add(10),
    };
    usize::from(value & 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_code_and_constants_are_told_apart_in_both_ways() {
        static CONSTANT: [u8; 4096] = [7; 4096];
        let local = 0_usize;
        let at_stack = (&raw const local) as usize;
        let at_code = place_of as *const () as usize;
        let at_constant = CONSTANT.as_ptr() as usize;
        let maps = || sys::open(b"/proc/self/maps\0", false).unwrap();
        for (address, allows) in [
            (at_stack, [true, true, false]),
            (at_code, [true, false, true]),
            (at_constant, [true, false, false]),
            (16, [false; 3]),
            (usize::MAX, [false; 3]),
        ] {
            for (access, is_allowed) in [Access::Read, Access::Write, Access::Execute].into_iter().zip(allows)
            {
                for place in [place_of(address, access), search(&maps(), address, access)] {
                    match place {
                        Place::Mapped { low, high } => {
                            assert!(is_allowed && low <= address && address < high, "{address:x}");
                        }
                        other => assert!(!is_allowed && other == Place::Other, "{address:x} {access:?}"),
                    }
                }
            }
        }
    }
}
