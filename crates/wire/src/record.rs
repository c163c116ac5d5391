//! Event records inside an event buffer.
//!
//! A record is 1 to n little-endian 64-bit words. Word 0 of each:
//!
//! ```text
//!  63        58 57   56 55                                            0
//! +------------+-------+----------------------------------------------+
//! | kind (6)   | flags | ticks since the session's start (56)         |
//! +------------+-------+----------------------------------------------+
//! ```
//!
//! | kind | words | word 1 | word 2 | word 3 |
//! |---|---|---|---|---|
//! | `Alloc` | 3 | heap:8 address:56 | size:28 stack:36 | |
//! | `AllocBig` | 4 | heap:8 address:56 | size | stack |
//! | `Free` | 2 | heap:8 address:56 | | |
//! | `FreeStack` | 3 | heap:8 address:56 | stack | |
//! | `ReallocPrepare` | 2 | heap:8 old address:56 | | |
//! | `ReallocCommit` | 4 | heap:8 new address:56 | size | stack |
//! | `ReallocAbort` | 3 | heap:8 old address:56 | size asked | |
//! | `AllocFailed` | 3 | size asked | stack | |
//! | `Module` | n | total bytes of the record | see [`ModuleRecord`] | |
//! | `ThreadName` | 4 | 16 bytes, zero padded | | |
//! | `HeapCreate`, `HeapDestroy` | 3 | heap:8 handle:56 | stack | |
//! | `HeapName` | 4 | heap:8 part:56 | 16 bytes, zero padded | |
//! | `Unmap` | 3 | heap:8 address:56 | bytes | |
//! | `Protect` | 4 | heap:8 address:56 | bytes | state:28 stack:36 |
//! | `Function` | n | total bytes of the record | see [`FunctionRecord`] | |
//! | `UnknownLanguage` | 2 | language:32 version:32 | | |
//! | `Sample` | 5 | heap:8 address:56 | size | stack |
//! | `ResizedSample` | 5 | heap:8 address:56 | size | stack |
//! | `CandidateFree` | 2 | heap:8 address:56 | | |
//! | `PoolAlloc` | 5 | heap:8 address:56 | size | stack |
//! | `PoolClear` | 3 | heap:8 pool:56 | stack | |
//! | `PoolJoin` | 3 | heap:8 address:56 | pool | |
//! | `PoolDissolve` | 2 | heap:8 pool:56 | | |
//! | `ShortFree` | 1 | | | |
//! | `ShortAlloc` | 2 | size:28 stack:36 | | |
//!
//! A stack is a node of the tree and the number of the called function: see [`crate::CALLED`].
//!
//! Nearly all records are short ones. They belong to the program's main heap, have an address
//! divisible by 8, and follow soon after another record in their buffer. (A buffer's first record
//! is never short.) Word 0 of a short record holds all but size and node:
//!
//! ```text
//!  63      62      61                 44 43                             0
//! +-------+-------+---------------------+--------------------------------+
//! | short | alloc | ticks since the     | address / 8 (44)               |
//! |   1   | or 0  | record before (18)  |                                |
//! +-------+-------+---------------------+--------------------------------+
//! ```
//!
//! The parts of a heap's name, up to four, come before its `HeapCreate`. `HeapDestroy` frees all
//! blocks of its heap.
//!
//! `Unmap` (mmap heap) names a range, which may cover a part of a mapping or several mappings.
//! `Protect` likewise names a range, with the call's stack and the new state ([`PROTECT_RESERVE`]
//! and related constants).
//!
//! The last word of `Sample` and `ResizedSample` is the mean distance by which they were drawn.
//! `ResizedSample` is a `ReallocCommit` whose new block is a sample.
//!
//! `CandidateFree` frees a block on a marked page; only the recorder knows whether the block is a
//! sample.
//!
//! The last word of a `PoolAlloc` names the pool. `PoolClear` frees all blocks of a pool. A block
//! that is reallocated stays in its pool. `PoolJoin` adds an existing block to a pool;
//! `PoolDissolve` ends a pool whose blocks live on.
//!
//! A `ReallocPrepare` is followed, in the same thread, by its `ReallocCommit` (moved or in place)
//! or `ReallocAbort` (failed: the old block lives on). `realloc(p, 0)` that freed the block is a
//! `ReallocCommit` with new address 0 and size 0. `realloc(NULL, n)` is an `Alloc`.

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the table above describes each")]
pub enum RecordKind {
    Alloc = 1,
    AllocBig = 2,
    Free = 3,
    FreeStack = 4,
    ReallocPrepare = 5,
    ReallocCommit = 6,
    ReallocAbort = 7,
    AllocFailed = 8,
    Module = 9,
    ThreadName = 10,
    HeapCreate = 11,
    HeapDestroy = 12,
    Unmap = 13,
    HeapName = 14,
    Protect = 15,
    Function = 16,
    UnknownLanguage = 17,
    Sample = 18,
    ResizedSample = 19,
    CandidateFree = 20,
    PoolAlloc = 21,
    PoolClear = 22,
    PoolJoin = 23,
    PoolDissolve = 24,
    /// Kinds 32 to 47: the lower bits of the kind belong to the time.
    ShortFree = 32,
    /// Kinds 48 to 63: the lower bits of the kind belong to the time.
    ShortAlloc = 48,
}

impl RecordKind {
    /// Position of the kind's lowest bit in word 0.
    pub const SHIFT: u32 = 58;

    /// Kind in word 0 of a record; `None` if the kind is unknown.
    #[must_use]
    pub const fn of_untrusted(word0: u64) -> Option<Self> {
        Some(match word0 >> Self::SHIFT {
            1 => Self::Alloc,
            2 => Self::AllocBig,
            3 => Self::Free,
            4 => Self::FreeStack,
            5 => Self::ReallocPrepare,
            6 => Self::ReallocCommit,
            7 => Self::ReallocAbort,
            8 => Self::AllocFailed,
            9 => Self::Module,
            10 => Self::ThreadName,
            11 => Self::HeapCreate,
            12 => Self::HeapDestroy,
            13 => Self::Unmap,
            14 => Self::HeapName,
            15 => Self::Protect,
            16 => Self::Function,
            17 => Self::UnknownLanguage,
            18 => Self::Sample,
            19 => Self::ResizedSample,
            20 => Self::CandidateFree,
            21 => Self::PoolAlloc,
            22 => Self::PoolClear,
            23 => Self::PoolJoin,
            24 => Self::PoolDissolve,
            32..48 => Self::ShortFree,
            48.. => Self::ShortAlloc,
            _ => return None,
        })
    }

    /// Number of words of a record of this kind; 0 for `Module` and `Function`, whose word 1 holds
    /// their size in bytes.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::ShortFree => 1,
            Self::Free
            | Self::CandidateFree
            | Self::ReallocPrepare
            | Self::ShortAlloc
            | Self::PoolDissolve
            | Self::UnknownLanguage => 2,
            Self::Alloc | Self::FreeStack | Self::ReallocAbort | Self::AllocFailed => 3,
            Self::HeapCreate | Self::HeapDestroy | Self::Unmap | Self::PoolClear | Self::PoolJoin => 3,
            Self::AllocBig | Self::ReallocCommit | Self::ThreadName | Self::HeapName | Self::Protect => 4,
            Self::Sample | Self::ResizedSample | Self::PoolAlloc => 5,
            Self::Module | Self::Function => 0,
        }
    }
}

/// Mask of the time in word 0.
pub const TICKS_MASK: u64 = (1 << 56) - 1;
/// Mask of the address in an address word; the 8 bits above hold the heap.
pub const ADDRESS_MASK: u64 = (1 << 56) - 1;

/// Heap number in an address word: the program's main heap.
pub const HEAP_MALLOC: u8 = 0;
/// Heap number in an address word: the mmap heap, with [`crate::FLAG_HOOK_MMAP`].
pub const HEAP_MMAP: u8 = 1;

/// State in a `Protect` record, above the stack in its last word: a new mapping that is only
/// reserved.
pub const PROTECT_MAP: u32 = 0;
/// State in a `Protect` record: the range becomes usable.
pub const PROTECT_USE: u32 = 1;
/// State in a `Protect` record: the range becomes reserved, and holds nothing usable.
pub const PROTECT_RESERVE: u32 = 2;

/// Packs word 0 of a record.
#[must_use]
pub const fn word0(kind: RecordKind, ticks: u64) -> u64 {
    (kind as u64) << RecordKind::SHIFT | (ticks & TICKS_MASK)
}

/// Packs an address word.
#[must_use]
pub const fn address_word(heap: u8, address_avma: u64) -> u64 {
    (heap as u64) << 56 | (address_avma & ADDRESS_MASK)
}

/// Bit of word 0 that makes a record a short one.
pub const SHORT: u64 = 1 << 63;
/// Bit of a short record's word 0 that makes it an allocation.
pub const SHORT_ALLOC: u64 = 1 << 62;
/// Position of the time's lowest bit in a short record.
const SHORT_TICKS_SHIFT: u32 = 44;
/// Exclusive limit of the ticks that a short record can hold since the preceding record: 0.1 ms at
/// 2.5 GHz.
const SHORT_TICKS_END: u64 = 1 << 18;
/// Mask of the addresses that a short record can hold.
const SHORT_ADDRESS_MASK: u64 = (1 << 47) - 8;
/// Time before a buffer's first record, for the writer. No real time is near this value.
pub const NO_RECORD_BEFORE: u64 = 1 << 63;

/// Packs word 0 of a short record of the program's main heap; `None` if address or time do not fit.
/// `alloc_bit` is `SHORT_ALLOC` or 0; `ticks_before` is the time of the preceding record in the
/// buffer.
#[inline(always)]
#[must_use]
pub const fn short_word0(alloc_bit: u64, address_avma: u64, ticks: u64, ticks_before: u64) -> Option<u64> {
    let since = ticks.wrapping_sub(ticks_before);
    if address_avma & !SHORT_ADDRESS_MASK != 0 || since >= SHORT_TICKS_END {
        return None;
    }
    Some(SHORT | alloc_bit | since << SHORT_TICKS_SHIFT | address_avma >> 3)
}

/// Address in word 0 of a short record.
#[inline(always)]
#[must_use]
pub const fn short_address(word0: u64) -> u64 {
    (word0 << 3) & SHORT_ADDRESS_MASK
}

/// Time of a record with this word 0, which follows a record at `ticks_before` in its buffer.
#[inline(always)]
#[must_use]
pub const fn record_ticks(word0: u64, ticks_before: u64) -> u64 {
    if word0 & SHORT != 0 {
        ticks_before.wrapping_add(word0 >> SHORT_TICKS_SHIFT & (SHORT_TICKS_END - 1)) & TICKS_MASK
    } else {
        word0 & TICKS_MASK
    }
}

/// Fixed part of a `Module` record: 8 words, followed by build-id, path and command line, each
/// padded to a multiple of 8 bytes.
///
/// * Word 0: kind and time.
/// * Word 1: total bytes.
/// * Word 2: load bias (`l_addr`).
/// * Word 3: start of the range (avma).
/// * Word 4: end of the range (avma).
/// * Word 5: build-id bytes:32 | path bytes:32.
/// * Word 6: flags ([`MODULE_MAIN`], [`MODULE_UNLOADED`]).
/// * Word 7: bytes of the command line, which only the main program has. Each of its words ends
///   with a zero.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRecord;

impl ModuleRecord {
    /// Number of words before the build-id.
    pub const FIXED_WORDS: usize = 8;
    /// Largest recorded build-id in bytes.
    pub const BUILD_ID_BYTES_MAX: usize = 64;
    /// Largest recorded path in bytes; longer ones are cut at the front.
    pub const PATH_BYTES_MAX: usize = 1024;
    /// Largest recorded command line in bytes; longer ones are cut at the end.
    pub const COMMAND_BYTES_MAX: usize = 1024;
    /// Largest record in bytes.
    pub const BYTES_MAX: usize =
        Self::FIXED_WORDS * 8 + Self::BUILD_ID_BYTES_MAX + Self::PATH_BYTES_MAX + Self::COMMAND_BYTES_MAX;
}

/// Fixed part of a `Function` record, which describes a language's function. Name and file follow
/// the 5 words, each padded to a multiple of 8 bytes.
///
/// * Word 0: kind and time.
/// * Word 1: total bytes.
/// * Word 2: language:32 | number:32 (see [`language_place`]).
/// * Word 3: first line.
/// * Word 4: name bytes:32 | file bytes:32.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRecord;

impl FunctionRecord {
    /// Number of words before the name.
    pub const FIXED_WORDS: usize = 5;
    /// Largest record in bytes.
    pub const BYTES_MAX: usize = 3072;
}

/// Language number of a frame, as in [`language_place`]: Python.
pub const LANGUAGE_PYTHON: u8 = 1;
/// Language number: JavaScript.
pub const LANGUAGE_JAVASCRIPT: u8 = 2;
/// Language number: Java.
pub const LANGUAGE_JAVA: u8 = 3;
/// Language number: Ruby.
pub const LANGUAGE_RUBY: u8 = 4;
/// Language number: PHP.
pub const LANGUAGE_PHP: u8 = 5;
/// Language number: Perl.
pub const LANGUAGE_PERL: u8 = 6;
/// Language number: Lua.
pub const LANGUAGE_LUA: u8 = 9;
/// Bit in the version of an `UnknownLanguage` record: a CPython without the interpreter's lock.
pub const VERSION_WITHOUT_LOCK: u32 = 1 << 31;
/// Largest line number that [`language_place`] holds.
pub const LINE_MAX: u32 = (1 << 24) - 2;

/// Packs a language frame's location into a word that is never an address of code. The language (1
/// to 14) begins at bit 52, the function's number at bit 24, the line at bit 0 (0: unknown).
///
/// A stack node holds this word plus one, because a return address lies behind its call.
#[inline(always)]
#[must_use]
pub const fn language_place(language: u8, number: u32, line: u32) -> u64 {
    (language as u64) << 52 | ((number as u64) & 0xfff_ffff) << 24 | line as u64
}

/// Module flag: the main program. Its path is empty in the link map, so the recorder reads
/// /proc/PID/exe.
pub const MODULE_MAIN: u64 = 1;
/// Module flag: the module of this range is unloaded.
pub const MODULE_UNLOADED: u64 = 2;

const _: () = assert!(ModuleRecord::BYTES_MAX < crate::BUFFER_BYTES_MIN);
const _: () = assert!(FunctionRecord::BYTES_MAX < crate::BUFFER_BYTES_MIN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_record_gives_back_what_was_put_in_and_takes_nothing_that_does_not_fit() {
        let last = SHORT_TICKS_END - 1;
        for bit in [0, SHORT_ALLOC] {
            for address in [0, 8, 0x5555_5555_4328, (1 << 47) - 8] {
                for (before, since) in [(0, 0), (7, 1), (1 << 40, last), (TICKS_MASK - last, last)] {
                    let word0 = short_word0(bit, address, before + since, before).unwrap();
                    assert_eq!(short_address(word0), address);
                    assert_eq!(record_ticks(word0, before), before + since);
                    let kind = if bit == 0 { RecordKind::ShortFree } else { RecordKind::ShortAlloc };
                    assert_eq!(RecordKind::of_untrusted(word0), Some(kind));
                }
            }
        }
        for address in [1, 4, 1 << 47, (1 << 55) + 8, u64::MAX] {
            assert_eq!(short_word0(0, address, 5, 5), None);
        }
        // Too long after the previous record, before it, and without a previous record.
        for before in [5 - 1, u64::MAX, NO_RECORD_BEFORE] {
            let ticks = before.wrapping_add(SHORT_TICKS_END);
            assert_eq!(short_word0(0, 16, ticks, before), None);
        }
        assert_eq!(short_word0(0, 16, 4, 5), None);
        assert_eq!(short_word0(0, 16, 0, NO_RECORD_BEFORE), None);
        assert_eq!(short_word0(0, 16, TICKS_MASK, NO_RECORD_BEFORE), None);
    }

    #[test]
    fn a_long_record_has_its_own_time_and_kind() {
        let word0 = word0(RecordKind::HeapName, 123);
        assert_eq!(record_ticks(word0, 99), 123);
        assert_eq!(RecordKind::of_untrusted(word0), Some(RecordKind::HeapName));
        let kind = |number: u64| RecordKind::of_untrusted(number << RecordKind::SHIFT);
        let first_free = (1..32).find(|&number| kind(number).is_none()).unwrap();
        assert!(first_free > RecordKind::PoolDissolve as u64);
        assert!((1..first_free).all(|number| kind(number).is_some_and(|kind| kind as u64 == number)));
        assert!((first_free..32).all(|number| kind(number).is_none()));
    }
}
