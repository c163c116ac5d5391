//! Memory of a running process that lies: of each reading some words are bent.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap};
use heapr_native::Memory;

struct Lying {
    file: File,
    /// State of the sequence by which words are bent.
    state: Cell<u64>,
    /// One word of so many is bent.
    rarity: u64,
}

impl Lying {
    fn next(&self) -> u64 {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        state
    }
}

impl Memory for Lying {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let count = self.file.read_at(into, address_avma).unwrap_or(0);
        for word in into[..count].chunks_exact_mut(8) {
            let random = self.next();
            if random.is_multiple_of(self.rarity) {
                let bent = match random >> 8 & 3 {
                    0 => random >> 16,
                    1 => u64::MAX,
                    2 => address_avma + (random >> 50),
                    _ => random >> 40,
                };
                word.copy_from_slice(&bent.to_le_bytes());
            }
        }
        count
    }
}

/// Heaps of a process that stands still, read so many times with bent words, of which one in so
/// many is by turns. Bent anchors are refused: then there is no heap.
pub(crate) fn lying_heaps(
    interpreter: Interpreter,
    pid: u32,
    rounds: u64,
    rarities: [u64; 4],
) -> impl Iterator<Item = ManagedHeap> {
    let mappings = heapr_proc::mappings::read(pid).unwrap();
    (0..rounds).filter_map(move |round| {
        let memory = Lying {
            file: File::open(format!("/proc/{pid}/mem")).unwrap(),
            state: Cell::new(0x9e37_79b9_7f4a_7c15 ^ (round + 1) << 32),
            rarity: rarities[round as usize % rarities.len()],
        };
        let request = HeapRequest {
            memory: &memory,
            mappings: &mappings,
            blocks: &[],
            contents: Contents::Strings,
            goes_on: &|| true,
        };
        interpreter.read(&request).ok()
    })
}
