//! Memory of the process that may be gone, and that another thread may give back at any moment: it
//! is copied by the kernel, for which that is no fault.

use heapr_ring::sys;

/// The process's own memory, as a file.
pub(crate) struct CopiedMemory(sys::Descriptor);

impl CopiedMemory {
    pub(crate) fn open() -> Option<Self> {
        sys::open(b"/proc/self/mem\0", false).ok().map(Self)
    }

    /// Fills `into`; `None`: not all of it can be read.
    pub(crate) fn copy(&self, address: usize, into: &mut [u8]) -> Option<()> {
        (sys::read_at(&self.0, into, address) == Ok(into.len())).then_some(())
    }

    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        let mut word = [0; 8];
        self.copy(address, &mut word)?;
        Some(usize::from_ne_bytes(word))
    }
}
