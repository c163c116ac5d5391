//! Memory of a made CPython 3.12, small enough for a fuzzer. Its pools have objects of each form of
//! type, all with references to each other. Any word of it can be set to another.
//!
//! ```text
//! MODULE: ELF header, dynamic symbols | _PyRuntime | types | interpreter    HEAP: four pools
//! ```

use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap, NativeBlock};
use heapr_native::Memory;
use heapr_proc::Mapping;

const MODULE_AVMA: u64 = 0x10_0000;
const MODULE_BYTES: usize = 0x70_000;
const HEAP_AVMA: u64 = 0x7f00_0000_0000;
const POOL_BYTES: u64 = 16 << 10;
const POOL_COUNT: u64 = 4;
const BLOCK_BYTES: u64 = 512;
/// Blocks of a pool behind its head of 48 bytes.
const BLOCKS: u64 = (POOL_BYTES - 48) / BLOCK_BYTES;
/// Bytes before each object: those of the collector.
const BEFORE: u64 = 16;

const RUNTIME: u64 = 0x1000;
const VERSION: u64 = 0x1800;
const SECRET: u64 = 0x1900;
const TYPES: u64 = 0x2000;
const TYPE_BYTES: u64 = 0x400;
/// Type of lists.
const LIST: u64 = TYPES + 2 * TYPE_BYTES;
const NAMES: u64 = 0x8000;
const ARENAS: u64 = 0x9000;
const THREAD: u64 = 0x9800;
const INTERPRETER: u64 = 0xa000;
const INTERPRETER_BYTES: u64 = 383_552;
/// Symbols: name, address in the module.
const SYMBOLS: [(&str, u64); 5] = [
    ("_PyRuntime", RUNTIME),
    ("_Py_HashSecret", SECRET),
    ("Py_Version", VERSION),
    ("PyType_Type", TYPES),
    ("PyDict_Type", TYPES + TYPE_BYTES),
];

/// Types: name, flag of its form, size, and size of an item. The first two have symbols.
const FORMS: [(&str, u64, u64, u64); 22] = [
    ("type", 1 << 31, 920, 40),
    ("dict", 1 << 29, 48, 0),
    ("list", 1 << 25, 40, 0),
    ("tuple", 1 << 26, 24, 8),
    ("str", 1 << 28, 64, 0),
    ("int", 1 << 24, 24, 4),
    ("bytes", 1 << 27, 33, 1),
    ("set", 0, 200, 0),
    ("function", 0, 160, 0),
    ("module", 0, 64, 0),
    ("collections.deque", 0, 232, 0),
    ("frame", 0, 120, 0),
    ("generator", 0, 160, 8),
    ("bytearray", 0, 56, 0),
    ("array.array", 0, 64, 0),
    ("numpy.ndarray", 0, 96, 0),
    ("weakref.ReferenceType", 0, 72, 0),
    ("code", 0, 200, 2),
    ("_thread._local", 0, 80, 0),
    ("functools._lru_cache_wrapper", 0, 120, 0),
    ("app.Thing", 1 << 9, 64, 0),
    ("app.Rows", 1 << 9 | 1 << 25, 64, 0),
];

/// Memory of the made process.
#[derive(Debug, Clone)]
pub(crate) struct MadeMemory {
    module: Vec<u8>,
    heap: Vec<u8>,
}

impl MadeMemory {
    /// A process in order.
    pub(crate) fn new() -> Self {
        let heap = vec![0; (POOL_COUNT * POOL_BYTES) as usize];
        let mut made = Self { module: vec![0; MODULE_BYTES], heap };
        made.write_file();
        made.write_runtime();
        made.write_types();
        made.write_pools();
        made.write_objects();
        made
    }

    /// Number of words.
    pub(crate) fn word_count(&self) -> usize {
        (self.module.len() + self.heap.len()) / 8
    }

    /// Sets a word by its number; those of the heap come first.
    pub(crate) fn set_word(&mut self, number: usize, word: u64) {
        let at = number % self.word_count() * 8;
        match at.checked_sub(self.heap.len()) {
            None => self.heap[at..at + 8].copy_from_slice(&word.to_le_bytes()),
            Some(at) => self.module[at..at + 8].copy_from_slice(&word.to_le_bytes()),
        }
    }

    /// Address of an object by its number.
    pub(crate) fn object(number: u64) -> u64 {
        let number = number % (POOL_COUNT * BLOCKS);
        let pool_avma = HEAP_AVMA + number / BLOCKS * POOL_BYTES;
        pool_avma + 48 + number % BLOCKS * BLOCK_BYTES + BEFORE
    }

    /// Gives the type of lists the largest size that a word can have.
    pub(crate) fn make_lists_endless(&mut self) {
        self.put(LIST + 32, u64::MAX);
    }

    /// Changes words as bytes say: four of a place, one of a kind, eight of a value each.
    pub(crate) fn bend(&mut self, bytes: &[u8]) {
        for edit in bytes.chunks_exact(13) {
            let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
            let mut value = [0; 8];
            value.copy_from_slice(&edit[5..]);
            let value = u64::from_le_bytes(value);
            // Most words of the interpreter say nothing.
            let place = if edit[4] & 0x40 == 0 { place % (self.heap.len() / 8 + 0x1400) } else { place };
            let word = match edit[4] & 7 {
                0 => value,
                1 => Self::object(value),
                2 => MODULE_AVMA + TYPES + value % FORMS.len() as u64 * TYPE_BYTES,
                3 => value & 0xffff,
                4 => u64::MAX - (value & 0xff),
                5 => HEAP_AVMA + value % self.heap.len() as u64 / 8 * 8,
                6 => MODULE_AVMA + value % self.module.len() as u64 / 8 * 8,
                _ => 1 << (value & 63),
            };
            self.set_word(place, word);
        }
    }

    /// Reads the heap.
    ///
    /// # Errors
    /// Those of a reading.
    pub(crate) fn read(&self, contents: Contents) -> heapr_managed::Result<ManagedHeap> {
        let mapping = |start_avma: u64, bytes: usize, inode: u64| Mapping {
            start_avma,
            end_avma: start_avma + bytes as u64,
            is_readable: true,
            is_writable: true,
            is_executable: inode != 0,
            is_shared: false,
            file_off: 0,
            inode,
            name: if inode == 0 { String::new() } else { "/usr/bin/python3.12".to_owned() },
        };
        let mappings = [mapping(MODULE_AVMA, self.module.len(), 1), mapping(HEAP_AVMA, self.heap.len(), 0)];
        // Some lie where objects are, which no allocator's do.
        let blocks: Vec<NativeBlock> = (0..16)
            .map(|number| NativeBlock { address_avma: HEAP_AVMA + 64 + number * 0x1000, usable_bytes: 0x800 })
            .collect();
        let request =
            HeapRequest { memory: self, mappings: &mappings, blocks: &blocks, contents, goes_on: &|| true };
        Interpreter::Python.read(&request)
    }

    fn put(&mut self, at: u64, word: u64) {
        self.module[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn put_heap(&mut self, avma: u64, word: u64) {
        let at = (avma - HEAP_AVMA) as usize;
        self.heap[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn put_text(&mut self, at: u64, text: &str) {
        self.module[at as usize..at as usize + text.len()].copy_from_slice(text.as_bytes());
    }

    /// ELF header, program headers, dynamic section, symbols and their hashes.
    fn write_file(&mut self) {
        const DYNAMIC: u64 = 0x200;
        const STRINGS: u64 = 0x300;
        const TABLE: u64 = 0x400;
        const HASHES: u64 = 0x600;
        self.put_text(0, "\x7fELF\x02\x01");
        self.put(32, 64);
        self.put(56, 2);
        self.put(64, 1);
        self.put(64 + 40, MODULE_BYTES as u64);
        self.put(64 + 56, 2);
        self.put(64 + 56 + 16, DYNAMIC);
        for (number, (tag, value)) in
            [(5, STRINGS), (6, TABLE), (0x6fff_fef5, HASHES)].into_iter().enumerate()
        {
            self.put(DYNAMIC + number as u64 * 16, tag);
            self.put(DYNAMIC + number as u64 * 16 + 8, value);
        }
        // One bucket, whose chain begins with symbol 1.
        self.put(HASHES, 1 | 1 << 32);
        self.put(HASHES + 8, 1);
        self.put(HASHES + 24, 1);
        for (number, (name, address)) in SYMBOLS.into_iter().enumerate() {
            let number = number as u64;
            self.put_text(STRINGS + 1 + number * 32, name);
            let at = TABLE + (number + 1) * 24;
            self.put(at, 1 + number * 32);
            self.put(at + 8, address);
            self.put(at + 16, 0x800);
            let hash =
                name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
            let is_last = number as usize + 1 == SYMBOLS.len();
            let value = hash & !1 | u32::from(is_last);
            let at = (HASHES + 28 + number * 4) as usize;
            self.module[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }

    fn write_runtime(&mut self) {
        self.put(VERSION, 0x030c_01f0);
        self.put(SECRET, 0x1234_5678_9abc_def1);
        self.put(RUNTIME + 40, MODULE_AVMA + INTERPRETER);
        // Modules, dict of sys, the first thread.
        self.put(INTERPRETER + 944, Self::object(1));
        self.put(INTERPRETER + 352, Self::object(1 + FORMS.len() as u64));
        self.put(INTERPRETER + 72, MODULE_AVMA + THREAD);
        for head in (0..3).map(|number| INTERPRETER + 136 + number * 24) {
            self.put(head, MODULE_AVMA + head);
            self.put(head + 8, MODULE_AVMA + head);
        }
        self.put(INTERPRETER + 3960 + 512, MODULE_AVMA + ARENAS);
        self.put(INTERPRETER + 3960 + 520, 1);
        self.put(ARENAS, HEAP_AVMA);
        self.put(ARENAS + 8, HEAP_AVMA + POOL_COUNT * POOL_BYTES);
        // A frame that runs: by way of the thread's cframe.
        self.put(THREAD + 56, MODULE_AVMA + THREAD + 0x100);
        self.put(THREAD + 0x100, Self::object(13));
        assert!(INTERPRETER + INTERPRETER_BYTES < MODULE_BYTES as u64);
    }

    fn write_types(&mut self) {
        for (number, (name, flag, basic_bytes, item_bytes)) in FORMS.into_iter().enumerate() {
            let number = number as u64;
            let (at, name_at) = (TYPES + number * TYPE_BYTES, NAMES + number * 64);
            self.put_text(name_at, name);
            self.put(at, 5);
            self.put(at + 8, MODULE_AVMA + TYPES);
            self.put(at + 24, MODULE_AVMA + name_at);
            self.put(at + 32, basic_bytes);
            self.put(at + 40, item_bytes);
            self.put(at + 168, flag | 1 << 14);
            self.put(at + 264, Self::object(1 + number));
        }
        // The heir of lists.
        self.put(TYPES + 21 * TYPE_BYTES + 256, MODULE_AVMA + LIST);
    }

    fn write_pools(&mut self) {
        for number in 0..POOL_COUNT {
            let pool_avma = HEAP_AVMA + number * POOL_BYTES;
            self.put_heap(pool_avma, BLOCKS);
            // Arena 0, class of blocks of 512 bytes; the end of the blocks that were used.
            self.put_heap(pool_avma + 32, (BLOCK_BYTES / 16 - 1) << 32);
            self.put_heap(pool_avma + 40, 48 + BLOCKS * BLOCK_BYTES);
        }
    }

    /// Objects refer to others by all of their words. Small numbers stand where sizes are.
    fn write_objects(&mut self) {
        for number in 0..POOL_COUNT * BLOCKS {
            let (avma, of) = (Self::object(number), number % FORMS.len() as u64);
            self.put_heap(avma, 3);
            self.put_heap(avma + 8, MODULE_AVMA + TYPES + of * TYPE_BYTES);
            self.put_heap(avma + 16, 2);
            for place in 3..60 {
                let other = Self::object(number * 31 + place * 7);
                self.put_heap(avma + place * 8, if place % 5 == 0 { place } else { other });
            }
            match FORMS[of as usize].0 {
                "dict" => {
                    // The table is behind its object: 8 indices, then entries of 24 bytes.
                    let keys_avma = avma + 96;
                    self.put_heap(avma + 32, keys_avma);
                    self.put_heap(avma + 40, 0);
                    self.put_heap(keys_avma, 1);
                    self.put_heap(keys_avma + 8, 0x00_03_03);
                    self.put_heap(keys_avma + 24, 3);
                }
                // Kind 1, compact, of ASCII characters.
                "str" => self.put_heap(avma + 32, (1 | 1 << 3 | 1 << 4) << 2),
                "list" => self.put_heap(avma + 32, 4),
                _ => {}
            }
        }
    }
}

impl Memory for MadeMemory {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        for (start_avma, bytes) in [(MODULE_AVMA, &self.module), (HEAP_AVMA, &self.heap)] {
            let rest = address_avma.checked_sub(start_avma).and_then(|at| bytes.get(at as usize..));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                return count;
            }
        }
        0
    }
}
