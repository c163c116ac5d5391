//! Instructions in the target that a borrowed thread needs.

use heapr_proc::Mapping;
use memchr::memmem;

use super::c_library::{c_library, code_of};
use crate::arch::{IS_SIGRETURN_KERNELS, SIGRETURN_CODE, SYSTEM_CALL_CODE};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::{Modules, auxiliary};
use crate::remote::Gadgets;

/// Finds the instructions of the target's C library that a borrowed thread needs.
pub(crate) fn gadgets(pid: u32, memory: &ProcessMemory) -> Result<Gadgets> {
    gadgets_among(pid, memory, &Modules::read(pid, memory)?)
}

/// Variant of [`gadgets`] for a target whose modules are known.
pub(crate) fn gadgets_among(pid: u32, memory: &ProcessMemory, modules: &Modules) -> Result<Gadgets> {
    let mappings = memory.mappings().map_err(|_| Error::NoSuchProcess { pid })?;
    let (libc, name) = c_library(pid, memory, modules)?;
    find_gadgets(pid, memory, &mappings, code_of(&mappings, libc, memory, name))
}

/// Writes the instructions at the program's entry, which is never executed again. (The function
/// called from there returns behind them.)
pub(super) fn make_gadgets(pid: u32, memory: &ProcessMemory) -> Result<Gadgets> {
    const AT_ENTRY: u64 = 9;
    let entry_avma = auxiliary(pid)?.get(&AT_ENTRY).copied().unwrap_or(0);
    let bytes = [SYSTEM_CALL_CODE, SIGRETURN_CODE].concat();
    memory.write(entry_avma, &bytes).map_err(|source| Error::Memory { pid, source })?;
    let sigreturn_avma = entry_avma + SYSTEM_CALL_CODE.len() as u64;
    Ok(Gadgets { system_call_avma: entry_avma, sigreturn_avma })
}

/// Finds the instructions in the C library's code. On some processors it also searches the code
/// that the kernel has given to the program, to which signal handlers return there.
pub(super) fn find_gadgets(
    pid: u32,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    libc_code: (u64, u64),
) -> Result<Gadgets> {
    let kernels = mappings.iter().find(|mapping| IS_SIGRETURN_KERNELS && mapping.name == "[vdso]");
    let ranges = kernels.map(|mapping| (mapping.start_avma, mapping.end_avma));
    let (mut system_call, mut sigreturn) = (None, None);
    for range in std::iter::once(libc_code).chain(ranges) {
        let found = find_in(pid, memory, range)?;
        system_call = system_call.or(found.0);
        sigreturn = sigreturn.or(found.1);
        if let (Some(system_call_avma), Some(sigreturn_avma)) = (system_call, sigreturn) {
            return Ok(Gadgets { system_call_avma, sigreturn_avma });
        }
    }
    Err(Error::Unsupported { pid, reason: "its C library is not as expected (no system call found in it)" })
}

/// Addresses of both instructions in a range of code.
fn find_in(pid: u32, memory: &ProcessMemory, (start, end): (u64, u64)) -> Result<(Option<u64>, Option<u64>)> {
    const CODE_BYTES_MAX: u64 = 64 << 20;
    const SLICE_BYTES: u64 = 64 << 10;
    let end = end.min(start.saturating_add(CODE_BYTES_MAX));
    // Both are in the first functions of a C library, so that most of it need not be read.
    let (mut system_call, mut sigreturn) = (None, None);
    let finders = [SYSTEM_CALL_CODE, SIGRETURN_CODE].map(memmem::Finder::new);
    let mut room = vec![0; SLICE_BYTES as usize + SIGRETURN_CODE.len()];
    let mut slice = start;
    while slice < end && (system_call.is_none() || sigreturn.is_none()) {
        // Slices overlap, so that no match is cut in two.
        let bytes = (SLICE_BYTES + SIGRETURN_CODE.len() as u64).min(end - slice) as usize;
        let code = &mut room[..bytes];
        memory.read(slice, code).map_err(|source| Error::Memory { pid, source })?;
        let find = |finder: &memmem::Finder<'_>| finder.find(code).map(|at| slice + at as u64);
        system_call = system_call.or_else(|| find(&finders[0]));
        sigreturn = sigreturn.or_else(|| find(&finders[1]));
        slice += SLICE_BYTES;
    }
    Ok((system_call, sigreturn))
}
