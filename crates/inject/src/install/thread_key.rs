//! Thread key of the C library for the agent: a word per thread, and a call when a thread ends.

use std::mem::offset_of;

use heapr_known::glibc::{DESCRIPTOR_BEGIN, DESCRIPTOR_BYTES, INLINE_KEYS, KEY_VALUES_OFFSET};
use heapr_known::machine::{HERE, ThreadLocalPlace};
use heapr_known::musl;
use heapr_wire::{INJECTED_KEY_SET_TWICE, Injection};

use crate::error::{Error, Result};
use crate::memory::TargetMemory as _;
use crate::record::Record;
use crate::remote::Borrowed;

impl super::Install<'_> {
    /// Creates a key of the C library's threads. The location of the key's value in a thread's
    /// descriptor is the agent's word, and the key's destructor reports the thread's end.
    pub(super) fn make_key(
        &mut self,
        thread: &mut Borrowed<'_>,
        image_avma: u64,
        record: &mut Record,
    ) -> Result<()> {
        const MARK: u64 = 0x6865_6170_725f_6d6b;
        /// Offset of these values in glibc 2.2 to 2.41, for a program without its thread library.
        const FIRST_VALUE_OFFSET: u64 = (KEY_VALUES_OFFSET as u64).wrapping_add(8);
        let pid = self.request.pid;
        if self.plan.is_musl() {
            return self.make_key_of_musl(thread, record);
        }
        let (create, set) = (self.plan.key_create_avma, self.plan.set_specific_avma);
        let thread_pointer = thread.thread_pointer();
        if create == 0 || set == 0 {
            // glibc before 2.34 without libpthread, or linked statically: one thread, no keys.
            record.tls_offset = FIRST_VALUE_OFFSET.wrapping_add(u64::from(INLINE_KEYS - 1) * 16);
            return Ok(());
        }
        let claim = self.plan.image.word(self.plan.injection + offset_of!(Injection, claim_key) as u64)?;
        debug_assert!(claim > image_avma);
        let key_avma = record.scratch_avma + 64;
        let arguments = [create, record.key_delete_avma, key_avma];
        let status = thread.call_function(record.stub_avma, record.scratch_avma, claim, arguments)?;
        if status as u32 != 0 {
            return Err(Error::RemoteCall { pid, call: "pthread_key_create", errno: status as i32 });
        }
        let key = self.memory.read_u32(key_avma).map_err(|source| Error::Memory { pid, source })?;
        if key >= INLINE_KEYS {
            return Err(Error::Unsupported { pid, reason: "it has more than 31 thread keys" });
        }
        record.end_key = u64::from(key) + 1;
        self.keep(record)?;
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), MARK, 0])?;
        let begin_avma = thread_pointer.wrapping_add(DESCRIPTOR_BEGIN as u64);
        let page_bytes = heapr_proc::page_bytes();
        let descriptor = self.memory.read_vec(begin_avma, DESCRIPTOR_BYTES).or_else(|error| {
            // A small descriptor that ends at the thread pointer may begin where its mapping does,
            // as in the heap of a static program.
            let skipped = (begin_avma.next_multiple_of(page_bytes) - begin_avma) as usize;
            let rest =
                DESCRIPTOR_BYTES.checked_sub(skipped).filter(|_| DESCRIPTOR_BEGIN != 0).ok_or(error)?;
            let mut descriptor = vec![0; skipped];
            descriptor.extend(self.memory.read_vec(begin_avma + skipped as u64, rest)?);
            Ok(descriptor)
        });
        let descriptor = descriptor.map_err(|source| Error::Memory { pid, source })?;
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), 0, 0])?;
        let place = descriptor.chunks_exact(8).position(|word| word == MARK.to_le_bytes());
        match place {
            Some(place) => record.tls_offset = (DESCRIPTOR_BEGIN as u64).wrapping_add(place as u64 * 8),
            None => {
                return Err(Error::Unsupported {
                    pid,
                    reason: "its C library keeps thread values elsewhere",
                });
            }
        }
        Ok(())
    }

    /// Creates the key in a program with musl linked into it. A thread's values lie behind its
    /// descriptor. The first thread's values lie elsewhere; its word is a free word at the same
    /// offset.
    ///
    /// ```text
    /// thread pointer -> | struct pthread | to the alignment | value of key 0 | of key 1 | ...
    /// ```
    fn make_key_of_musl(&mut self, thread: &mut Borrowed<'_>, record: &mut Record) -> Result<()> {
        const ALIGN_MIN: u64 = 8;
        let pid = self.request.pid;
        if HERE.thread_locals != ThreadLocalPlace::BeforeThreadPointer {
            let reason =
                "musl is linked into it, whose threads keep their values at unknown places on this processor";
            return Err(Error::Unsupported { pid, reason });
        }
        let memory_error = |source| Error::Memory { pid, source };
        let elsewhere = Error::Unsupported { pid, reason: "its C library keeps thread values elsewhere" };
        let thread_pointer = thread.thread_pointer();
        let tls_align = self.plan.statics.as_ref().map_or(1, |program| program.tls_align);
        let values = musl::DESCRIPTOR_BYTES.next_multiple_of(tls_align.clamp(ALIGN_MIN, 4096));
        let mut key = 0;
        if self.plan.key_create_avma != 0 && self.plan.set_specific_avma != 0 {
            let end = offset_of!(Injection, end_of_thread) as u64;
            let end_avma = self.plan.image.word(self.plan.injection + end)?;
            let key_avma = record.scratch_avma + 64;
            let arguments = [key_avma, end_avma, 0];
            let create = self.plan.key_create_avma;
            let status = thread.call_function(record.stub_avma, record.scratch_avma, create, arguments)?;
            if status as u32 != 0 {
                return Err(Error::RemoteCall { pid, call: "pthread_key_create", errno: status as i32 });
            }
            key = self.memory.read_u32(key_avma).map_err(memory_error)?;
            record.end_key = (u64::from(key) + 1) | u64::from(INJECTED_KEY_SET_TWICE);
            // If the descriptor has another layout, the first thread's values are elsewhere too.
            let first_values =
                self.memory.read_u64(thread_pointer + musl::VALUES_OFFSET).map_err(memory_error)?;
            if first_values != self.plan.first_values_avma {
                return Err(elsewhere);
            }
        }
        record.tls_offset = values + 8 * u64::from(key);
        let word_avma = thread_pointer.wrapping_add(record.tls_offset);
        let is_free = match self.plan.first_descriptor {
            // The descriptor lies in a variable of musl if there are few thread-local variables.
            Some((start, end)) if (start..end).contains(&thread_pointer) => word_avma + 8 <= end,
            _ => heapr_proc::mappings::find(self.mappings, thread_pointer)
                .is_some_and(|mapping| mapping.contains(word_avma + 7) && mapping.is_writable),
        };
        if is_free && self.memory.read_u64(word_avma) == Ok(0) { Ok(()) } else { Err(elsewhere) }
    }
}
