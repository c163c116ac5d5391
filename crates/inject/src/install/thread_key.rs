//! A key of the C library for the agent: its word per thread, and a call when a thread ends.

use std::mem::offset_of;

use heapr_wire::Injection;

use crate::error::{Error, Result};
use crate::memory::TargetMemory as _;
use crate::record::Record;
use crate::remote::Borrowed;

impl super::Install<'_> {
    /// A key of the C library's threads gives the agent its word per thread (the place of the key's
    /// value in the thread's own descriptor) and tells it when a thread ends.
    pub(super) fn make_key(
        &mut self,
        thread: &mut Borrowed<'_>,
        image_avma: u64,
        record: &mut Record,
    ) -> Result<()> {
        const MARK: u64 = 0x6865_6170_725f_6d6b;
        /// Keys below this have their value in the descriptor.
        const INLINE_KEYS: u64 = 32;
        /// Where glibc 2.2 to 2.41 keeps them, for a program without its thread library.
        const FIRST_VALUE_OFFSET: u64 = 0x310 + 8;
        const DESCRIPTOR_BYTES: usize = 0x900;
        let pid = self.request.pid;
        let (create, set) = (self.plan.key_create_avma, self.plan.set_specific_avma);
        let fs_base = thread.fs_base();
        if create == 0 || set == 0 {
            // glibc before 2.34 without libpthread: one thread, no keys.
            record.tls_offset = FIRST_VALUE_OFFSET + (INLINE_KEYS - 1) * 16;
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
        if u64::from(key) >= INLINE_KEYS {
            return Err(Error::Unsupported { pid, reason: "it has more than 31 thread keys" });
        }
        record.end_key = u64::from(key) + 1;
        self.keep(record)?;
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), MARK, 0])?;
        let descriptor = self
            .memory
            .read_vec(fs_base, DESCRIPTOR_BYTES)
            .map_err(|source| Error::Memory { pid, source })?;
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), 0, 0])?;
        let place = descriptor.chunks_exact(8).position(|word| word == MARK.to_le_bytes());
        match place {
            Some(place) => record.tls_offset = place as u64 * 8,
            None => {
                return Err(Error::Unsupported {
                    pid,
                    reason: "its C library keeps thread values elsewhere",
                });
            }
        }
        Ok(())
    }
}
