//! The records of a thread's events: blocks, mappings, heaps, pools, functions of languages.

use heapr_wire::{HEAP_MALLOC, HEAP_MMAP, PACKED_SIZE_MAX, RecordKind, STACK_BITS, address_word};

use crate::record::thread::{Scope, ScopeHandle};
use crate::record::writing::{ensure_room, region_of, write, write_plain, write_short, write_texts};

/// Records a new block of the program's main heap.
#[inline(always)]
pub(crate) fn alloc_of_malloc(scope: &mut Scope, address: usize, size: u32, stack: u64) {
    let level = scope.level();
    let packed = u64::from(size) << STACK_BITS | stack;
    if write_short(level, address, [packed]) {
    } else {
        alloc(scope.handle(), HEAP_MALLOC, address, size as usize, stack);
    }
}

/// Records a new block.
#[cold]
#[inline(never)]
pub(crate) fn alloc(handle: ScopeHandle, heap: u8, address: usize, size: usize, stack: u64) {
    let scope = &mut *handle.scope();
    if !ensure_room(scope, 4) {
        return;
    }
    let level = scope.level();
    let place = address_word(heap, address as u64);
    let packed = (size as u64) << STACK_BITS | stack;
    if size > PACKED_SIZE_MAX {
        write(level, RecordKind::AllocBig, region_of(heap, address), [place, size as u64, stack]);
    } else if heap == HEAP_MALLOC {
        write_plain(level, address, [packed]);
    } else {
        write(level, RecordKind::Alloc, None, [place, packed]);
    }
}

/// Records a new block that was drawn as a sample with this mean.
#[cold]
pub(crate) fn sample(scope: &mut Scope, address: usize, size: usize, stack: u64, mean_bytes: u64) {
    write_sample(scope, RecordKind::Sample, address, [size as u64, stack, mean_bytes]);
}

/// Records a block about to be freed on a marked page: only the recorder knows whether it is a
/// sample.
#[cold]
pub(crate) fn free_of_candidate(scope: &mut Scope, address: usize) {
    if ensure_room(scope, 2) {
        let place = address_word(HEAP_MALLOC, address as u64);
        write(scope.level(), RecordKind::CandidateFree, region_of(HEAP_MALLOC, address), [place]);
    }
}

/// Records a resized block that was drawn as a sample; ends what [`realloc_prepare`] has begun.
#[cold]
pub(crate) fn resized_sample(scope: &mut Scope, address: usize, size: usize, stack: u64, mean_bytes: u64) {
    write_sample(scope, RecordKind::ResizedSample, address, [size as u64, stack, mean_bytes]);
}

fn write_sample(scope: &mut Scope, kind: RecordKind, address: usize, rest: [u64; 3]) {
    if ensure_room(scope, 5) {
        let [size, stack, mean_bytes] = rest;
        let place = address_word(HEAP_MALLOC, address as u64);
        write(scope.level(), kind, region_of(HEAP_MALLOC, address), [place, size, stack, mean_bytes]);
    }
}

/// Records a block about to be freed.
#[inline(always)]
pub(crate) fn free(scope: &mut Scope, heap: u8, address: usize) {
    if !ensure_room(scope, 2) {
        return;
    }
    if heap == HEAP_MALLOC {
        write_plain(scope.level(), address, []);
    } else {
        write(scope.level(), RecordKind::Free, None, [address_word(heap, address as u64)]);
    }
}

/// Records a block about to be freed, with the stack of the call.
pub(crate) fn free_with_stack(scope: &mut Scope, heap: u8, address: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(
            scope.level(),
            RecordKind::FreeStack,
            region_of(heap, address),
            [address_word(heap, address as u64), stack],
        );
    }
}

/// Records a block about to be reallocated. Returns `false` if the record is lost.
#[inline(always)]
pub(crate) fn realloc_prepare(scope: &mut Scope, heap: u8, address: usize) -> bool {
    let is_room = ensure_room(scope, 2);
    if is_room {
        write(
            scope.level(),
            RecordKind::ReallocPrepare,
            region_of(heap, address),
            [address_word(heap, address as u64)],
        );
    }
    is_room
}

/// Records a reallocation that succeeded (address 0, size 0: it freed the block).
#[inline(always)]
pub(crate) fn realloc_commit(scope: &mut Scope, heap: u8, address: usize, size: usize, stack: u64) {
    if ensure_room(scope, 4) {
        let level = scope.level();
        let place = address_word(heap, address as u64);
        write(level, RecordKind::ReallocCommit, region_of(heap, address), [place, size as u64, stack]);
    }
}

/// Records a reallocation that failed: the old block stays live.
#[cold]
pub(crate) fn realloc_abort(scope: &mut Scope, heap: u8, address: usize, size: usize) {
    if ensure_room(scope, 3) {
        write(
            scope.level(),
            RecordKind::ReallocAbort,
            region_of(heap, address),
            [address_word(heap, address as u64), size as u64],
        );
    }
}

/// Records a range about to be unmapped.
pub(crate) fn unmap(scope: &mut Scope, heap: u8, address: usize, size: usize) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::Unmap, None, [address_word(heap, address as u64), size as u64]);
    }
}

/// Records a range that was mapped or protected; `what` says what becomes of it.
#[cold]
pub(crate) fn protect(scope: &mut Scope, what: u32, address: usize, size: usize, stack: u64) {
    if ensure_room(scope, 4) {
        let place = address_word(HEAP_MMAP, address as u64);
        write(
            scope.level(),
            RecordKind::Protect,
            None,
            [place, size as u64, u64::from(what) << STACK_BITS | stack],
        );
    }
}

/// Records a new heap that the program has created itself: first its name in parts, then the heap.
#[cold]
pub(crate) fn heap_created(scope: &mut Scope, heap: u8, name: &[u8], handle: u64, stack: u64) {
    for (part, bytes) in name.chunks(16).enumerate() {
        if !ensure_room(scope, 4) {
            return;
        }
        let mut words = [0_u64; 2];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            for (place, &byte) in padded.iter_mut().zip(bytes) {
                *place = byte;
            }
            *word = u64::from_le_bytes(padded);
        }
        let [first, second] = words;
        write(scope.level(), RecordKind::HeapName, None, [address_word(heap, part as u64), first, second]);
    }
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::HeapCreate, None, [address_word(heap, handle), stack]);
    }
}

/// Records that a heap of the program's own is about to be destroyed, with all its blocks.
#[cold]
pub(crate) fn heap_destroyed(scope: &mut Scope, heap: u8, handle: u64, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::HeapDestroy, None, [address_word(heap, handle), stack]);
    }
}

/// Records a new block of a pool.
#[cold]
pub(crate) fn pool_alloc(scope: &mut Scope, heap: u8, address: usize, size: usize, stack: u64, pool: usize) {
    if ensure_room(scope, 5) {
        let place = address_word(heap, address as u64);
        write(scope.level(), RecordKind::PoolAlloc, None, [place, size as u64, stack, pool as u64]);
    }
}

/// Records a pool whose blocks are all about to be freed.
#[cold]
pub(crate) fn pool_cleared(scope: &mut Scope, heap: u8, pool: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::PoolClear, None, [address_word(heap, pool as u64), stack]);
    }
}

/// Records that an existing block belongs to a pool from here on.
#[cold]
pub(crate) fn pool_joined(scope: &mut Scope, heap: u8, address: usize, pool: usize) {
    if ensure_room(scope, 3) {
        let place = address_word(heap, address as u64);
        write(scope.level(), RecordKind::PoolJoin, None, [place, pool as u64]);
    }
}

/// Records that a pool is dissolved while its blocks stay live.
#[cold]
pub(crate) fn pool_dissolved(scope: &mut Scope, heap: u8, pool: usize) {
    if ensure_room(scope, 2) {
        write(scope.level(), RecordKind::PoolDissolve, None, [address_word(heap, pool as u64)]);
    }
}

/// Records a call that failed.
#[cold]
pub(crate) fn failed(scope: &mut Scope, size: usize, stack: u64) {
    if ensure_room(scope, 3) {
        write(scope.level(), RecordKind::AllocFailed, None, [size as u64, stack]);
    }
}

/// A language's function, as language frames refer to it by number.
#[derive(Debug)]
pub(crate) struct LanguageFunction<'a> {
    pub(crate) language: u8,
    pub(crate) number: u32,
    pub(crate) first_line: u32,
    pub(crate) name: &'a [u8],
    pub(crate) file: &'a [u8],
}

/// Writes the record of a function to which the next frames refer.
#[cold]
pub(crate) fn language_function(scope: &mut Scope, function: &LanguageFunction<'_>) {
    let fixed = [
        u64::from(function.language) << 32 | u64::from(function.number),
        u64::from(function.first_line),
        (function.name.len() as u64) << 32 | function.file.len() as u64,
    ];
    write_texts(scope, RecordKind::Function, fixed, [function.name, function.file]);
}

/// Records an interpreter whose frames are not read because its version is unknown. `what` is its
/// language (upper half) and version.
#[cold]
pub(crate) fn language_unknown(scope: &mut Scope, what: u64) {
    if ensure_room(scope, 2) {
        write(scope.level(), RecordKind::UnknownLanguage, None, [what]);
    }
}

/// Registers process and thread with the recorder although there is no event yet.
pub(crate) fn announce() {
    let marker = 0_usize;
    let Some(mut scope) = Scope::enter((&raw const marker) as usize) else { return };
    ensure_room(&mut scope, 1);
    // Maps the memory of the cached stack, too.
    scope.level().kept.prepare();
    // A buffer that is to be closed with its first record must not wait for that record.
    if scope.level().closing != 0 {
        scope.level().close_buffer();
    }
    // Finds the stack's bounds by system calls, which the program may soon forbid itself.
    let is_main = scope.state().is_main;
    scope.state().ranges.find((&raw const marker) as usize, is_main);
}
