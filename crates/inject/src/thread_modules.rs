//! Numbers of the modules with thread-local variables: each thread has a vector with their
//! addresses, indexed by these numbers.
//!
//! The number is in the loader's entry of a module. Its offset differs between versions; a library
//! publishes it for debuggers ([`PLACE`]; since glibc 2.34 the C library itself does).

use object::LittleEndian as LE;
use object::elf::PT_TLS;
use object::read::elf::ProgramHeader as _;

use crate::elf_in_memory::program_headers;
use crate::error::Result;
use crate::memory::{ProcessMemory, TargetMemory};
use crate::modules::Modules;

/// Symbol of a field description for debuggers: size in bits, number of elements, offset.
const PLACE: &str = "_thread_db_link_map_l_tls_modid";
/// Exclusive limit of the offset in bytes.
const PLACE_MAX: u32 = 1 << 14;
const NAME_BYTES_MAX: usize = 4096;

/// A module with thread-local variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadModule {
    /// Index in the threads' vectors.
    pub number: u64,
    /// Path of the module in the loader's list; empty for the program itself.
    pub path: String,
    /// Size in bytes of the variables of one thread.
    pub bytes: u64,
}

/// Reads the numbered modules of a process; empty if its C library publishes no offset.
///
/// # Errors
/// Returns an error if the memory cannot be read, or the process has no loader.
pub fn thread_modules(pid: u32) -> Result<Vec<ThreadModule>> {
    let Ok(memory) = ProcessMemory::open(pid) else { return Ok(Vec::new()) };
    let modules = Modules::read(pid, &memory)?;
    let place = modules.list.iter().find_map(|module| module.symbol(&memory, PLACE));
    let Some(place_avma) = place.map(|symbol| symbol.address_avma) else { return Ok(Vec::new()) };
    let part = |number: u64| memory.read_u32(place_avma.wrapping_add(number * 4)).ok();
    let Some(offset) = part(2).filter(|&offset| part(0) == Some(64) && offset < PLACE_MAX) else {
        return Ok(Vec::new());
    };
    let found = modules.links.iter().filter_map(|&(link_avma, link)| {
        let number = memory.read_u64(link_avma.wrapping_add(u64::from(offset))).ok()?;
        let word = |at: usize| u64::from_le_bytes(link[at..at + 8].try_into().unwrap_or_default());
        let path = memory.read_string(word(8), NAME_BYTES_MAX).unwrap_or_default();
        let path = String::from_utf8_lossy(&path).into_owned();
        let bytes = if path.is_empty() { main_bytes(pid) } else { local_bytes(&memory, word(0)) };
        (number != 0).then_some(ThreadModule { number, path, bytes: bytes? })
    });
    Ok(found.collect())
}

/// Size of the program's thread-local variables; the program may lie anywhere.
fn main_bytes(pid: u32) -> Option<u64> {
    let mappings = heapr_proc::mappings::read(pid).ok()?;
    let exe = std::fs::read_link(heapr_proc::folder(pid).join("exe")).ok()?;
    let first = mappings.iter().find(|mapping| exe.as_os_str() == mapping.name.as_str())?;
    local_bytes(&ProcessMemory::open(pid).ok()?, first.start_avma)
}

/// Size of a module's thread-local variables, from the file headers at an address.
fn local_bytes(memory: &impl TargetMemory, start_avma: u64) -> Option<u64> {
    let headers = program_headers(memory, start_avma)?;
    let of_threads = headers.iter().find(|header| header.p_type(LE) == PT_TLS)?;
    Some(of_threads.p_memsz(LE))
}

#[cfg(test)]
mod tests {
    use super::*;

    std::thread_local! {
        static OWN: std::cell::Cell<u64> = const { std::cell::Cell::new(7) };
    }

    #[test]
    fn this_program_has_thread_local_variables() {
        OWN.with(|own| own.set(own.get() + 1));
        let found = thread_modules(std::process::id()).unwrap();
        // A C library before 2.34 publishes the offset in another library; musl does not publish
        // it.
        if found.is_empty() {
            return;
        }
        let own = found.iter().find(|module| module.path.is_empty()).unwrap();
        assert!(own.number == 1 && own.bytes >= 8, "{found:?}");
        assert!(found.iter().any(|module| module.path.contains("libc.so")), "{found:?}");
    }
}
