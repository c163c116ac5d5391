//! Mapping of the pool, and checked access to its parts.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use heapr_wire::{
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BUFFER_COUNT_LIMIT, BUFFER_HEADERS_OFFSET, BUILD_ID, BufferHeader,
    Control, POOL_MAGIC, PROCESS_SLOT_COUNT, PROCESS_SLOTS_OFFSET, ProcessSlot, StackNode, THREAD_SLOT_COUNT,
    THREAD_SLOTS_OFFSET, ThreadSlot, buffers_offset, pool_bytes,
};

use crate::sys::{self, Descriptor};

/// Reason why a pool could not be created or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError {
    /// The buffer size is not a power of two between the limits.
    BufferSize {
        /// Requested size in bytes.
        bytes: usize,
    },
    /// The number of buffers is 0 or above the limit.
    BufferCount {
        /// Requested number.
        count: usize,
    },
    /// A system call failed.
    System {
        /// Name of the system call.
        call: &'static str,
        /// Error number.
        errno: i32,
    },
    /// The file is not a pool of this build.
    NotOurPool,
}

impl core::fmt::Display for PoolError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::BufferSize { bytes } => write!(
                formatter,
                "buffer size of {bytes} bytes is not a power of two from {BUFFER_BYTES_MIN} to {BUFFER_BYTES_MAX}"
            ),
            Self::BufferCount { count } => {
                write!(formatter, "{count} buffers asked for, 1 to {BUFFER_COUNT_LIMIT} possible")
            }
            Self::System { call, errno } => write!(formatter, "{call} failed with error {errno}"),
            Self::NotOurPool => write!(formatter, "the shared buffers belong to another build of heapr"),
        }
    }
}

impl core::error::Error for PoolError {}

/// Size and number of the buffers.
#[derive(Debug, Clone, Copy)]
pub struct PoolProperties {
    /// Bytes per buffer: a power of two from 4 KiB to 1 MiB.
    pub buffer_bytes: usize,
    /// Largest number of buffers, at most 65,536. A buffer gets its memory when it is opened.
    pub buffer_count: usize,
    /// Number of buffers that have memory from the start.
    pub open_count: usize,
    /// Whether memory is so ample that an agent may use a buffer before it has its memory.
    pub is_ample: bool,
}

/// Smallest number of buffers that a process maps.
const BUFFERS_MAPPED_MIN: usize = 4;
/// Divisor of the remaining address space of a process with a limit: the pool takes at most this
/// fraction.
const ROOM_SHARE: usize = 8;

/// A mapped pool. An agent never unmaps its pool, because its threads may be using it; the creator
/// unmaps on drop.
#[derive(Debug)]
pub struct Pool {
    base: *mut u8,
    bytes: usize,
    buffer_bytes: usize,
    /// Number of mapped buffers.
    buffer_count: usize,
    buffers_offset: usize,
    /// Number of buffers that have memory. Only the creator knows it; the control page's figure may
    /// be overwritten by others.
    open_count: AtomicU32,
    /// True if the mapping is unmapped on drop.
    is_own: bool,
}

// SAFETY: the mapping is only reached through atomics, which any thread may use; the other fields
// are atomics too or never change.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool (recorder). The descriptor must stay open for as long as new processes may
    /// join.
    ///
    /// # Errors
    /// Returns an error if a size is out of bounds or the kernel refuses memory.
    pub fn create(properties: PoolProperties) -> Result<(Self, Descriptor), PoolError> {
        let PoolProperties { buffer_bytes, buffer_count, open_count, is_ample } = properties;
        check_sizes(buffer_bytes, buffer_count)?;
        let bytes = pool_bytes(buffer_count, buffer_bytes);
        let descriptor = sys::memfd_sealed(bytes)
            .map_err(|errno| PoolError::System { call: "memfd_create or its sealing", errno })?;
        let open_count = open_count.min(buffer_count);
        let fixed_bytes = buffers_offset(buffer_count);
        sys::allocate(&descriptor, 0, fixed_bytes.saturating_add(open_count.saturating_mul(buffer_bytes)))
            .map_err(|errno| PoolError::System { call: "fallocate of the shared buffers", errno })?;
        let base = sys::map_shared(&descriptor, bytes)
            .map_err(|errno| PoolError::System { call: "mmap of the shared buffers", errno })?;
        let open = AtomicU32::new(open_count as u32);
        let pool = Self {
            base,
            bytes,
            buffer_bytes,
            buffer_count,
            buffers_offset: fixed_bytes,
            open_count: open,
            is_own: true,
        };
        let control = pool.control();
        control.build_id.store(BUILD_ID, Relaxed);
        control.pool_bytes.store(bytes as u64, Relaxed);
        control.buffers_offset.store(pool.buffers_offset as u64, Relaxed);
        control.buffer_bytes.store(buffer_bytes as u32, Relaxed);
        control.buffer_count.store(buffer_count as u32, Relaxed);
        let claimable_count = if is_ample { buffer_count } else { open_count };
        control.buffers_open.store(claimable_count as u32, Relaxed);
        control.buffers_limit.store(buffer_count as u32, Relaxed);
        control.magic.store(POOL_MAGIC, core::sync::atomic::Ordering::Release);
        Ok((pool, descriptor))
    }

    /// Opens the pool behind a descriptor from another process (agent). All values are checked.
    ///
    /// # Errors
    /// [`PoolError::NotOurPool`] unless the descriptor is a sealed pool of this build with valid
    /// sizes. [`PoolError::System`] if the mapping fails.
    pub fn open(descriptor: &Descriptor) -> Result<Self, PoolError> {
        const SEAL_SHRINK: usize = 2;
        let seals = sys::seals(descriptor).map_err(|_| PoolError::NotOurPool)?;
        if seals & SEAL_SHRINK == 0 {
            // Its owner could shrink the file while this process writes: SIGBUS in the target.
            return Err(PoolError::NotOurPool);
        }
        let head = sys::map_shared(descriptor, PROCESS_SLOTS_OFFSET)
            .map_err(|errno| PoolError::System { call: "mmap of the control page", errno })?;
        // SAFETY: the mapping is page aligned and at least one page long, and only atomics are
        // used. A shorter file would fault only beyond its last page. A file of length 0 cannot
        // pass: the recorder seals after sizing.
        let control = unsafe { &*head.cast::<Control>() };
        let matches = control.magic.load(core::sync::atomic::Ordering::Acquire) == POOL_MAGIC
            && control.build_id.load(Relaxed) == BUILD_ID;
        let buffer_bytes = control.buffer_bytes.load(Relaxed) as usize;
        let buffer_count = control.buffer_count.load(Relaxed) as usize;
        let bytes = control.pool_bytes.load(Relaxed);
        // SAFETY: the reference to the page is not used after this line.
        unsafe { sys::unmap(head, PROCESS_SLOTS_OFFSET) };
        if !matches || check_sizes(buffer_bytes, buffer_count).is_err() {
            return Err(PoolError::NotOurPool);
        }
        if bytes != pool_bytes(buffer_count, buffer_bytes) as u64 {
            return Err(PoolError::NotOurPool);
        }
        // A process with little address space maps fewer buffers than exist.
        let buffers_offset = buffers_offset(buffer_count);
        let bytes_of = |count: usize| buffers_offset.saturating_add(count.saturating_mul(buffer_bytes));
        let least_count = BUFFERS_MAPPED_MIN.min(buffer_count);
        let room_bytes = sys::address_room_bytes().map_or(usize::MAX, |room| room / ROOM_SHARE);
        let fitting = room_bytes.saturating_sub(buffers_offset) / buffer_bytes;
        let mut buffer_count = buffer_count.min(fitting.max(least_count));
        loop {
            let bytes = bytes_of(buffer_count);
            match sys::map_shared_unlocked(descriptor, bytes) {
                Ok(base) => {
                    let open_count = AtomicU32::new(0);
                    return Ok(Self {
                        base,
                        bytes,
                        buffer_bytes,
                        buffer_count,
                        buffers_offset,
                        open_count,
                        is_own: false,
                    });
                }
                Err(_) if buffer_count > least_count => buffer_count = (buffer_count / 2).max(least_count),
                Err(errno) => return Err(PoolError::System { call: "mmap of the shared buffers", errno }),
            }
        }
    }

    /// Number of buffers that may be claimed at present: the first ones.
    #[inline]
    #[must_use]
    pub fn claimable_count(&self) -> usize {
        (self.control().buffers_open.load(Relaxed) as usize).min(self.buffer_count)
    }

    /// Marks an opened pool to be unmapped on drop. (An agent's pool is never unmapped: signal
    /// handlers may be using it.)
    #[must_use]
    pub fn unmapped_when_dropped(mut self) -> Self {
        self.is_own = true;
        self
    }

    /// Number of buffers that have memory (recorder).
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open_count.load(Relaxed) as usize
    }

    /// Restricts claims to buffers that have memory (recorder).
    pub fn forbid_others(&self) {
        self.control().buffers_open.store(self.open_count.load(Relaxed), Relaxed);
    }

    /// Largest number of buffers that may ever be open, as far as is known.
    #[must_use]
    pub fn limit_count(&self) -> usize {
        // `clamp` can panic, and the agent links this function.
        (self.control().buffers_limit.load(Relaxed) as usize).min(self.buffer_count).max(1)
    }

    /// Sets the largest number of buffers that can be opened at present (recorder).
    pub fn set_limit_count(&self, count: usize) {
        self.control().buffers_limit.store(count as u32, Relaxed);
    }

    /// Opens buffers up to number `count`, with memory of the caller's (recorder).
    ///
    /// # Errors
    /// Returns an error if the kernel has no memory.
    pub fn open_up_to(&self, descriptor: &Descriptor, count: usize) -> Result<(), PoolError> {
        let (open, count) = (self.open_count(), count.min(self.buffer_count));
        let offset = self.buffers_offset + open * self.buffer_bytes;
        sys::allocate(descriptor, offset, count.saturating_sub(open) * self.buffer_bytes)
            .map_err(|errno| PoolError::System { call: "fallocate of the shared buffers", errno })?;
        if count > open {
            self.open_count.store(count as u32, Relaxed);
            self.control().buffers_open.fetch_max(count as u32, Relaxed);
        }
        Ok(())
    }

    /// Bytes per buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Number of mapped buffers: in the recorder all that exist.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.buffer_count
    }

    /// Number of stack nodes per node block.
    #[must_use]
    pub fn nodes_per_block(&self) -> usize {
        self.buffer_bytes / size_of::<StackNode>()
    }

    /// The control page.
    #[inline]
    #[must_use]
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping begins with the control page, is page aligned and lives as long as
        // `self`. `Control` consists of atomics, for which every bit pattern is valid.
        unsafe { &*self.base.cast::<Control>() }
    }

    /// Process slot `index`; `None` if out of range.
    #[inline]
    #[must_use]
    pub fn process_slot(&self, index: u32) -> Option<&ProcessSlot> {
        if (index as usize) >= PROCESS_SLOT_COUNT {
            return None;
        }
        // SAFETY: in bounds by the check; the offset is aligned to 128; atomics only.
        Some(unsafe { &*self.base.add(PROCESS_SLOTS_OFFSET).cast::<ProcessSlot>().add(index as usize) })
    }

    /// Thread slot `index`; `None` if out of range.
    #[inline]
    #[must_use]
    pub fn thread_slot(&self, index: u32) -> Option<&ThreadSlot> {
        if (index as usize) >= THREAD_SLOT_COUNT {
            return None;
        }
        // SAFETY: as for process slots.
        Some(unsafe { &*self.base.add(THREAD_SLOTS_OFFSET).cast::<ThreadSlot>().add(index as usize) })
    }

    /// Header of buffer `index`; `None` if it is not mapped.
    #[inline]
    #[must_use]
    pub fn buffer_header(&self, index: u32) -> Option<&BufferHeader> {
        if (index as usize) >= self.buffer_count {
            return None;
        }
        // SAFETY: in bounds by the check (the headers of `buffer_count` buffers lie before the
        // buffers); aligned to 64.
        Some(unsafe { &*self.base.add(BUFFER_HEADERS_OFFSET).cast::<BufferHeader>().add(index as usize) })
    }

    /// Words of buffer `index`: `buffer_bytes / 8` of them.
    #[inline]
    #[must_use]
    pub fn buffer_words(&self, index: u32) -> Option<&[AtomicU64]> {
        if (index as usize) >= self.buffer_count {
            return None;
        }
        // SAFETY: in bounds by the check; page aligned; atomics only.
        Some(unsafe {
            let start = self.base.add(self.buffers_offset + index as usize * self.buffer_bytes);
            core::slice::from_raw_parts(start.cast::<AtomicU64>(), self.buffer_bytes / 8)
        })
    }

    /// Stack nodes of buffer `index`.
    #[inline]
    #[must_use]
    pub fn buffer_nodes(&self, index: u32) -> Option<&[StackNode]> {
        if (index as usize) >= self.buffer_count {
            return None;
        }
        // SAFETY: as for the words; 16-byte nodes of atomics in a page-aligned buffer.
        Some(unsafe {
            let start = self.base.add(self.buffers_offset + index as usize * self.buffer_bytes);
            core::slice::from_raw_parts(start.cast::<StackNode>(), self.nodes_per_block())
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.is_own {
            // SAFETY: `self` is the only owner of the mapping, and all borrows from it have ended.
            unsafe { sys::unmap(self.base, self.bytes) };
        }
    }
}

fn check_sizes(buffer_bytes: usize, buffer_count: usize) -> Result<(), PoolError> {
    if !buffer_bytes.is_power_of_two() || !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&buffer_bytes) {
        return Err(PoolError::BufferSize { bytes: buffer_bytes });
    }
    if !(1..=BUFFER_COUNT_LIMIT).contains(&buffer_count) {
        return Err(PoolError::BufferCount { count: buffer_count });
    }
    Ok(())
}
