//! Reads objects that a process has generated and registered for debuggers (GDB's JIT interface).
//! Their list is in the process's memory, and read from outside while the process lives.
//!
//! ```text
//! __jit_debug_descriptor    | version, action | entry | first entry |
//!                                                            v
//!                           | next | previous | object | bytes |  -> next …
//! ```

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use heapr_symbols::{MadeFunction, read_made_object};

/// Largest number of lists per process (one for each copy of the library that generates code).
const LISTS_MAX: usize = 8;
/// Largest number of entries that are followed in a list.
const ENTRIES_MAX: usize = 1 << 14;
/// Size in bytes of the largest object that is read; `BYTES_MAX` limits the sum per process.
const OBJECT_BYTES_MAX: u64 = 64 << 20;
const BYTES_MAX: u64 = 1 << 30;
/// Largest number of functions stored per process.
const FUNCTIONS_MAX: usize = 1 << 20;

/// Objects registered by one process.
#[derive(Debug, Default)]
pub(crate) struct MadeObjects {
    /// Addresses of the lists, with their heads when they were last read.
    lists: Vec<(u64, [u8; 24])>,
    memory: Option<File>,
    seen: HashSet<(u64, u64, u64)>,
    functions: Vec<MadeFunction>,
    read_bytes: u64,
}

impl MadeObjects {
    /// Registers a list.
    pub(crate) fn note(&mut self, descriptor_avma: u64) {
        let is_known = self.lists.iter().any(|&(known, _)| known == descriptor_avma);
        if !is_known && self.lists.len() < LISTS_MAX {
            self.lists.push((descriptor_avma, [0; 24]));
        }
    }

    /// Reads objects that are new.
    pub(crate) fn look(&mut self, pid: u32) {
        if self.lists.is_empty() {
            return;
        }
        if self.memory.is_none() {
            self.memory = File::open(format!("/proc/{pid}/mem")).ok();
        }
        let Some(memory) = self.memory.take() else { return };
        for place in 0..self.lists.len() {
            let (avma, before) = self.lists[place];
            let mut now = [0; 24];
            if memory.read_exact_at(&mut now, avma).is_ok() && now != before {
                self.lists[place].1 = now;
                self.follow(&memory, word(&now, 16));
            }
        }
        self.memory = Some(memory);
    }

    fn follow(&mut self, memory: &File, mut entry: u64) {
        for _ in 0..ENTRIES_MAX {
            let mut fields = [0; 32];
            if entry == 0 || memory.read_exact_at(&mut fields, entry).is_err() {
                return;
            }
            self.read(memory, word(&fields, 16), word(&fields, 24));
            entry = word(&fields, 0);
        }
    }

    /// Reads an object, unless it was read before.
    fn read(&mut self, memory: &File, at: u64, bytes: u64) {
        let mut head = [0; 64];
        let is_allowed = bytes <= OBJECT_BYTES_MAX && self.read_bytes.saturating_add(bytes) <= BYTES_MAX;
        if !is_allowed || bytes < head.len() as u64 || memory.read_exact_at(&mut head, at).is_err() {
            return;
        }
        // Another object may reuse the address: the addresses of its sections distinguish them.
        let sections = at.saturating_add(word(&head, 40));
        let count = u64::from(u16::from_le_bytes([head[60], head[61]]));
        let mut table = vec![0; (count * 64).min(bytes) as usize];
        let _ = memory.read_exact_at(&mut table, sections);
        let parts = table.chunks_exact(8).map(|part| word(part, 0));
        let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
            (hash ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        });
        if !self.seen.insert((at, bytes, hash)) {
            return;
        }
        self.read_bytes += bytes;
        let mut object = vec![0; bytes as usize];
        if memory.read_exact_at(&mut object, at).is_ok() {
            let room = FUNCTIONS_MAX.saturating_sub(self.functions.len());
            self.functions.extend(read_made_object(&object).into_iter().take(room));
        }
    }

    /// Returns the functions of all objects, in the order in which they were seen.
    pub(crate) fn finish(self) -> Vec<MadeFunction> {
        self.functions
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Object with one function of 32 bytes, whose section has an address.
    fn object(text_avma: u64, name: &str) -> Vec<u8> {
        let names = format!("\0{name}\0");
        let symbols_at = 64 + 4 * 64;
        let strings_at = symbols_at + 48;
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        let mut put = |value: u64, size: usize| bytes.extend(&value.to_le_bytes()[..size]);
        // Relocatable, of this processor; position and number of the sections.
        let machine = u64::from(heapr_known::machine::HERE.elf_number);
        for (value, size) in [(1, 2), (machine, 2), (1, 4), (0, 8), (0, 8), (64, 8), (0, 4), (64, 2)] {
            put(value, size);
        }
        for value in [0, 0, 64, 4, 3] {
            put(value, 2);
        }
        let mut section = |fields: [u64; 10]| {
            let sizes = [4, 4, 8, 8, 8, 8, 4, 4, 8, 8];
            fields.into_iter().zip(sizes).for_each(|(value, size)| put(value, size));
        };
        section([0; 10]);
        // Code; symbols; their names.
        section([0, 1, 6, text_avma, 0, 32, 0, 0, 1, 0]);
        section([0, 2, 0, 0, symbols_at, 48, 3, 1, 8, 24]);
        section([0, 3, 0, 0, strings_at, names.len() as u64, 0, 0, 1, 0]);
        bytes.resize(symbols_at as usize + 24, 0);
        // Global function in section 1.
        for (value, size) in [(1_u64, 4), (0x12, 1), (0, 1), (1, 2), (0, 8), (32, 8)] {
            bytes.extend(&value.to_le_bytes()[..size]);
        }
        bytes.extend(names.as_bytes());
        bytes
    }

    #[test]
    fn objects_in_a_list_are_read_once_and_again_where_another_lies() {
        let mut object_bytes = object(0x7000_1000, "first");
        let mut entry = [0, 0, object_bytes.as_ptr() as u64, object_bytes.len() as u64];
        let mut descriptor = [1_u64, entry.as_ptr() as u64, entry.as_ptr() as u64];
        let mut objects = MadeObjects::default();
        objects.note(descriptor.as_ptr() as u64);
        let pid = std::process::id();
        objects.look(pid);
        objects.look(pid);
        let moved = object(0x7000_2000, "other");
        object_bytes.copy_from_slice(&moved);
        // Simulates that the object was unregistered and another one registered.
        std::hint::black_box(&mut entry);
        descriptor[0] = 1 | 1 << 32;
        std::hint::black_box((&mut descriptor, &mut object_bytes));
        objects.look(pid);
        let found: Vec<_> = objects
            .finish()
            .into_iter()
            .map(|found| (found.start_avma, found.end_avma, found.name))
            .collect();
        assert_eq!(
            found,
            [(0x7000_1000, 0x7000_1020, "first".to_owned()), (0x7000_2000, 0x7000_2020, "other".to_owned())]
        );
    }
}
