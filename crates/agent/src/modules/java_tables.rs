//! The tables in which a HotSpot virtual machine describes its own structures for debuggers:
//! offsets of fields, addresses of static fields, sizes of types.
//!
//! The tables are in its module from the start, and have the same form from JDK 9 on.

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::modules::interpreters::JAVA;

/// Largest number of entries that are read of a table, more than any version has.
const ENTRIES_MAX: usize = 1 << 14;

/// `VMStructEntry`.
#[repr(C)]
struct FieldEntry {
    type_name: *const c_char,
    field_name: *const c_char,
    type_of_field: *const c_char,
    is_static: i32,
    offset: u64,
    address: usize,
}

/// `VMTypeEntry`.
#[repr(C)]
struct TypeEntry {
    name: *const c_char,
    superclass: *const c_char,
    kinds: [i32; 3],
    bytes: u64,
}

/// `VMIntConstantEntry`.
#[repr(C)]
struct ConstantEntry {
    name: *const c_char,
    value: i32,
}

/// The tables of the process's HotSpot virtual machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    structs: *const FieldEntry,
    types: *const TypeEntry,
    constants: *const ConstantEntry,
}

impl Tables {
    /// Returns the tables; `None` if the process has no HotSpot virtual machine.
    pub(crate) fn of_process() -> Option<Self> {
        // Acquire: pairs with the Release in `interpreters::note_java`, which stores all three.
        let structs = JAVA.structs.load(Acquire);
        if structs == 0 {
            return None;
        }
        // SAFETY: three pointers of the virtual machine's module, which exports them under these
        // names and is never unloaded.
        let [structs, types, constants] = unsafe {
            [structs, JAVA.types.load(Relaxed), JAVA.constants.load(Relaxed)]
                .map(|at| (at as *const usize).read_volatile())
        };
        (structs != 0 && types != 0 && constants != 0).then_some(Self {
            structs: structs as *const FieldEntry,
            types: types as *const TypeEntry,
            constants: constants as *const ConstantEntry,
        })
    }

    fn field_entry(&self, type_name: &CStr, name: &CStr) -> Option<&'static FieldEntry> {
        for number in 0..ENTRIES_MAX {
            // SAFETY: the table ends with an entry without a name, and the loop stops there.
            let entry = unsafe { &*self.structs.wrapping_add(number) };
            if entry.type_name.is_null() {
                return None;
            }
            if is(entry.type_name, type_name) && is(entry.field_name, name) {
                return Some(entry);
            }
        }
        None
    }

    /// Returns the offset of a field in its type.
    pub(crate) fn offset(&self, type_name: &CStr, name: &CStr) -> Option<usize> {
        let entry = self.field_entry(type_name, name).filter(|entry| entry.is_static == 0)?;
        usize::try_from(entry.offset).ok().filter(|&offset| offset < 1 << 16)
    }

    /// Returns the address of a static field.
    pub(crate) fn address(&self, type_name: &CStr, name: &CStr) -> Option<usize> {
        let entry = self.field_entry(type_name, name).filter(|entry| entry.is_static != 0)?;
        Some(entry.address).filter(|&address| address != 0)
    }

    /// Returns the size of a type in bytes.
    pub(crate) fn bytes(&self, type_name: &CStr) -> Option<usize> {
        for number in 0..ENTRIES_MAX {
            // SAFETY: as for the fields.
            let entry = unsafe { &*self.types.wrapping_add(number) };
            if entry.name.is_null() {
                return None;
            }
            if is(entry.name, type_name) {
                return usize::try_from(entry.bytes).ok().filter(|&bytes| bytes < 1 << 16);
            }
        }
        None
    }

    /// Returns the value of a named constant.
    pub(crate) fn constant(&self, name: &CStr) -> Option<i32> {
        for number in 0..ENTRIES_MAX {
            // SAFETY: as for the fields.
            let entry = unsafe { &*self.constants.wrapping_add(number) };
            if entry.name.is_null() {
                return None;
            }
            if is(entry.name, name) {
                return Some(entry.value);
            }
        }
        None
    }
}

fn is(text: *const c_char, wanted: &CStr) -> bool {
    // SAFETY: null, or a constant text of the virtual machine's module.
    !text.is_null() && unsafe { CStr::from_ptr(text) } == wanted
}
