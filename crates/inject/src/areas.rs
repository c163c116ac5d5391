//! Trampoline areas of a process, which are mapped near the functions whose jumps lead to them.

use heapr_proc::Mapping;

use crate::address_room;
use crate::arch::{Island, JUMP_DISTANCE};
use crate::error::{Error, Result};
use crate::mapping_flags::{MAP_FLAGS, PROT_READ_EXECUTE, PROT_READ_WRITE};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::{ISLANDS_MAX, Record};
use crate::remote::Borrowed;

/// Stopped process in which memory is mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) pid: u32,
    pub(crate) memory: &'a ProcessMemory,
    /// Mappings of the process when it was stopped.
    pub(crate) mappings: &'a [Mapping],
}

impl Ground<'_> {
    /// Maps memory for data, within a distance in bytes of an address.
    pub(crate) fn map_near(
        &self,
        thread: &mut Borrowed<'_>,
        near_avma: u64,
        bytes: u64,
        distance: u64,
    ) -> Result<u64> {
        let &Self { pid, memory, .. } = self;
        let no_room = Error::Unsupported { pid, reason: "there is no free address range near its allocator" };
        // The kernel refuses a range that was mapped since the list was read; then the list is read
        // again.
        let mut mappings = self.mappings.to_vec();
        for _ in 0..4 {
            let Some(hint) = address_room::room_near(&mappings, near_avma, bytes, distance) else {
                return Err(no_room);
            };
            let arguments = [hint, bytes, PROT_READ_WRITE, MAP_FLAGS, u64::MAX, 0];
            match thread.system_call(libc::SYS_mmap, arguments)? {
                Ok(address) if address == hint => return Ok(address),
                Ok(address) => drop(thread.system_call(libc::SYS_munmap, [address, bytes, 0, 0, 0, 0])?),
                Err(libc::EEXIST) => {}
                Err(errno) => return Err(Error::RemoteCall { pid, call: "mmap", errno }),
            }
            mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        }
        Err(no_room)
    }
}

/// Reason of a function that is not hooked.
pub(crate) const TOO_MANY: &str = "there are too many";

/// Trampoline areas under construction.
#[derive(Debug)]
pub(crate) struct Areas<'a> {
    ground: Ground<'a>,
    /// Size of each in bytes.
    bytes: u64,
    islands: Vec<Island>,
}

impl<'a> Areas<'a> {
    /// Creates the list, with areas that have room for so many functions.
    pub(crate) fn new(ground: Ground<'a>, function_count: usize) -> Self {
        Self { ground, bytes: Island::bytes_for(function_count), islands: Vec::new() }
    }

    /// Returns the area near a function, which is mapped if necessary, or the reason why it cannot
    /// be mapped. A new area is noted in the record at once.
    pub(crate) fn near(
        &mut self,
        thread: &mut Borrowed<'_>,
        entry_avma: u64,
        record: Option<&mut Record>,
    ) -> Result<std::result::Result<&mut Island, &'static str>> {
        let Ground { pid, memory, .. } = self.ground;
        let is_near = |island: &Island| island.start_avma.abs_diff(entry_avma) < JUMP_DISTANCE;
        if let Some(near) = self.islands.iter().position(is_near) {
            return Ok(Ok(&mut self.islands[near]));
        }
        if record.as_ref().is_some_and(|record| record.islands.len() >= ISLANDS_MAX) {
            return Ok(Err(TOO_MANY));
        }
        let start = self.ground.map_near(thread, entry_avma, self.bytes, JUMP_DISTANCE)?;
        let island = match record {
            Some(record) => {
                record.islands.push((start, self.bytes));
                let written = memory.write(record.start_avma, &record.to_bytes());
                written.map_err(|source| Error::Memory { pid, source })?;
                Island::new(start, record.start_avma, record.gate_avma())
            }
            None => Island::new(start, start, start),
        };
        let island = island.map_err(|reason| Error::Unsupported { pid, reason })?;
        self.islands.push(island);
        let last = self.islands.len() - 1;
        Ok(Ok(&mut self.islands[last]))
    }

    /// Writes the code of all areas, and makes it executable.
    pub(crate) fn write(&self, thread: &mut Borrowed<'_>) -> Result<()> {
        let Ground { pid, memory, .. } = self.ground;
        for island in &self.islands {
            let written = memory.write(island.start_avma, &island.bytes);
            written.map_err(|source| Error::Memory { pid, source })?;
            let arguments = [island.start_avma, self.bytes, PROT_READ_EXECUTE, 0, 0, 0];
            thread.call_system("mprotect", libc::SYS_mprotect, arguments)?;
        }
        Ok(())
    }
}
