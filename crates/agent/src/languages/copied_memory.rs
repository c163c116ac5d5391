//! Reads memory that may be unmapped, or that another thread may unmap at any moment. The kernel
//! copies it, and reports an error instead of a fault.

use heapr_ring::sys;

/// Errors of [`sys::copy_own`] that do not depend on the memory.
const EPERM: i32 = 1;
const ENOSYS: i32 = 38;

/// The process's own memory; opened as a file if the kernel's copying call is not available.
#[derive(Default)]
pub(crate) struct CopiedMemory(Option<sys::Descriptor>);

impl CopiedMemory {
    /// Fills `into`; returns `None` if not all of it can be read.
    pub(crate) fn copy(&mut self, address: usize, into: &mut [u8]) -> Option<()> {
        match sys::copy_own(address, into) {
            Err(EPERM | ENOSYS) => {}
            copied => return copied.ok(),
        }
        if self.0.is_none() {
            self.0 = sys::open(b"/proc/self/mem\0", false).ok();
        }
        (sys::read_at(self.0.as_ref()?, into, address) == Ok(into.len())).then_some(())
    }

    pub(crate) fn word(&mut self, address: usize) -> Option<usize> {
        let mut word = [0; 8];
        self.copy(address, &mut word)?;
        Some(usize::from_ne_bytes(word))
    }
}
