//! Record that an attach leaves in the target for the detach, which may be by another process:
//! locations, and the overwritten bytes. It is found through the jump at malloc's entry. If the
//! attach or its removal was killed, it is found by its first word. Untrusted when it is read back.
//!
//! ```text
//! word  0  magic            1  build              2  mapping: start    3  bytes
//!       4  agent's list     5  its length         6  thread slot: offset from fs
//!       7  key plus one     8  pthread_key_delete 9  stub             10  scratch
//!      11  slot             12 generation         13  stack top
//!      14  area count       15 patch count
//!      16  trampoline areas: start, bytes (16 of them)
//!      48  the allocators' code: start, end (10)  68  code of the modules that they call (12)
//!      92  code in which the C library waits for its internal locks: start, end
//!      94  the agent's choice of a clock   95  1: an allocator besides the C library's is hooked
//!      96  the agent's table for the injector
//!      97  patches: address, original bytes, new bytes (and 1 above them: calls are counted), the
//!          word in the trampoline area that leads to the agent
//! ```

use heapr_wire::BUILD_ID;

use crate::allocator_code::AllocatorCode;
use crate::arch::{JUMP_BYTES, JumpBytes};
use crate::error::{Error, Result};
use crate::memory::TargetMemory;

/// Size in bytes of the record in the target, with the stub at its end.
pub(crate) const RECORD_BYTES: u64 = 16384;
/// Size in bytes of the code's scratch memory, behind record and agent.
pub(crate) const SCRATCH_BYTES: u64 = 4096;
/// Offset of the stub.
pub(crate) const STUB_OFFSET: u64 = RECORD_BYTES - 512;
/// Offset of the basic functions that the agent calls in a program without a shared C library.
pub(crate) const BASIC_OFFSET: u64 = STUB_OFFSET + 192;
/// First word of a record.
pub(crate) const RECORD_MAGIC: u64 = u64::from_le_bytes(*b"heaprrec");
const ISLANDS_AT: usize = 16;
pub(crate) const ISLANDS_MAX: usize = 16;
const ALLOCATORS_AT: usize = 48;
const LIBRARIES_AT: usize = 68;
const LOCKS_AT: usize = 92;
const CLOCK_AT: usize = 94;
const OTHER_AT: usize = 95;
const INJECTION_AT: usize = 96;
const PATCHES_AT: usize = 97;
pub(crate) const PATCHES_MAX: usize = (STUB_OFFSET as usize / 8 - PATCHES_AT) / 4;

/// Bytes that were overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) address_avma: u64,
    pub(crate) original: JumpBytes,
    pub(crate) new: JumpBytes,
    /// Address of the word that leads to the agent: see `Landing`.
    pub(crate) target_avma: u64,
    /// Whether the code that the patch leads to counts calls.
    pub(crate) counts: bool,
}

/// The record of an attach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) start_avma: u64,
    pub(crate) bytes: u64,
    pub(crate) list_avma: u64,
    pub(crate) list_count: u64,
    pub(crate) tls_offset: u64,
    pub(crate) end_key: u64,
    pub(crate) key_delete_avma: u64,
    pub(crate) stub_avma: u64,
    pub(crate) scratch_avma: u64,
    pub(crate) process_slot: u64,
    pub(crate) process_generation: u64,
    pub(crate) stack_top_avma: u64,
    pub(crate) clock_avma: u64,
    pub(crate) injection_avma: u64,
    pub(crate) islands: Vec<(u64, u64)>,
    pub(crate) code: AllocatorCode,
    pub(crate) patches: Vec<Patch>,
}

/// Position of the flag above the bytes of a patch.
const COUNTS_SHIFT: u32 = 56;
const _: () = assert!(JUMP_BYTES * 8 <= COUNTS_SHIFT as usize);

fn packed(bytes: JumpBytes) -> u64 {
    let mut word = [0; 8];
    word[..JUMP_BYTES].copy_from_slice(&bytes);
    u64::from_le_bytes(word)
}

fn unpacked(word: u64) -> JumpBytes {
    word.to_le_bytes().first_chunk().copied().unwrap_or_default()
}

/// Offset of the gate in the scratch page, behind its other contents.
const GATE_OFFSET: u64 = 3072;

impl Record {
    /// Address of the gate.
    pub(crate) fn gate_avma(&self) -> u64 {
        self.scratch_avma + GATE_OFFSET
    }

    /// Encodes the record as it lies in the target, without the stub.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut words = vec![0_u64; STUB_OFFSET as usize / 8];
        let head = [
            RECORD_MAGIC,
            BUILD_ID,
            self.start_avma,
            self.bytes,
            self.list_avma,
            self.list_count,
            self.tls_offset,
            self.end_key,
            self.key_delete_avma,
            self.stub_avma,
            self.scratch_avma,
            self.process_slot,
            self.process_generation,
            self.stack_top_avma,
            self.islands.len().min(ISLANDS_MAX) as u64,
            self.patches.len().min(PATCHES_MAX) as u64,
        ];
        words[..head.len()].copy_from_slice(&head);
        words[CLOCK_AT] = self.clock_avma;
        words[INJECTION_AT] = self.injection_avma;
        let code = &self.code;
        words[OTHER_AT] = u64::from(code.has_other);
        let locks: Vec<(u64, u64)> = code.private_lock_range.into_iter().collect();
        for (places, pairs) in [
            (ISLANDS_AT..ALLOCATORS_AT, &self.islands),
            (ALLOCATORS_AT..LIBRARIES_AT, &code.allocator_ranges),
            (LIBRARIES_AT..LOCKS_AT, &code.library_ranges),
            (LOCKS_AT..LOCKS_AT + 2, &locks),
        ] {
            for (place, &(first, second)) in words[places].chunks_exact_mut(2).zip(pairs) {
                place.copy_from_slice(&[first, second]);
            }
        }
        for (place, patch) in words[PATCHES_AT..].chunks_exact_mut(4).zip(&self.patches) {
            let counts = u64::from(patch.counts) << COUNTS_SHIFT;
            let (original, new) = (packed(patch.original), packed(patch.new) | counts);
            place.copy_from_slice(&[patch.address_avma, original, new, patch.target_avma]);
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads and decodes a record.
    pub(crate) fn read(pid: u32, memory: &impl TargetMemory, address_avma: u64) -> Result<Self> {
        let bytes = memory
            .read_vec(address_avma, STUB_OFFSET as usize)
            .map_err(|source| Error::Memory { pid, source })?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let malformed = |what, value| Error::Malformed { pid, what, address_avma, value };
        let [magic, build, start_avma, bytes, list_avma, list_count, tls_offset, end_key, rest @ ..] =
            &words[..ISLANDS_AT]
        else {
            return Err(malformed("injection record", 0));
        };
        let &[
            key_delete_avma,
            stub_avma,
            scratch_avma,
            process_slot,
            process_generation,
            stack_top_avma,
            islands,
            patches,
        ] = rest
        else {
            return Err(malformed("injection record", 0));
        };
        if (*magic, *build, *start_avma) != (RECORD_MAGIC, BUILD_ID, address_avma) {
            return Err(malformed("injection record", *magic));
        }
        if islands > ISLANDS_MAX as u64 || patches > PATCHES_MAX as u64 {
            return Err(malformed("number of patches", patches));
        }
        let pairs = |places: std::ops::Range<usize>| -> Vec<(u64, u64)> {
            let pairs = words[places].chunks_exact(2).map(|pair| (pair[0], pair[1]));
            pairs.take_while(|&(first, _)| first != 0).collect()
        };
        Ok(Self {
            start_avma: *start_avma,
            bytes: *bytes,
            list_avma: *list_avma,
            list_count: *list_count,
            tls_offset: *tls_offset,
            end_key: *end_key,
            key_delete_avma,
            stub_avma,
            scratch_avma,
            process_slot,
            process_generation,
            stack_top_avma,
            clock_avma: words[CLOCK_AT],
            injection_avma: words[INJECTION_AT],
            islands: words[ISLANDS_AT..]
                .chunks_exact(2)
                .take(islands as usize)
                .map(|pair| (pair[0], pair[1]))
                .collect(),
            code: AllocatorCode {
                allocator_ranges: pairs(ALLOCATORS_AT..LIBRARIES_AT),
                library_ranges: pairs(LIBRARIES_AT..LOCKS_AT),
                private_lock_range: pairs(LOCKS_AT..LOCKS_AT + 2).first().copied(),
                has_other: words[OTHER_AT] != 0,
            },
            patches: words[PATCHES_AT..]
                .chunks_exact(4)
                .take(patches as usize)
                .map(|patch| Patch {
                    address_avma: patch[0],
                    original: unpacked(patch[1]),
                    new: unpacked(patch[2]),
                    target_avma: patch[3],
                    counts: patch[2] >> COUNTS_SHIFT != 0,
                })
                .collect(),
        })
    }
}
