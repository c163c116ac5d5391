//! Is the program's malloc glibc's? If another module defines the name, its heap is not the one that is walked here.

use object::{Object as _, ObjectSymbol as _, ReadCache};

use super::error::Error;
use super::heap_memory::HeapMemory;
use super::mappings;
use crate::maps::Mapping;

/// Refuses processes where a module other than libc and the loader defines `malloc`.
pub(super) fn check_is_glibc(memory: &impl HeapMemory, mappings: &[Mapping]) -> Result<(), Error> {
    let mut seen: Vec<&str> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_executable && mapping.inode != 0) {
        let name = mappings::file_name(mapping);
        // The loader of 2.31 exports a malloc that it uses only until libc is there; the agent passes calls on.
        let is_harmless =
            name.starts_with("libc.so") || name.starts_with("libc-2.") || name.starts_with("ld-");
        if is_harmless || name.contains("heapr") || seen.contains(&mapping.name.as_str()) {
            continue;
        }
        seen.push(&mapping.name);
        if defines_malloc(memory, &mapping.name) {
            return Err(Error::OtherAllocator { by: name.to_owned() });
        }
    }
    Ok(())
}

/// Whether the file's dynamic symbols define `malloc`; a file that cannot be read does not count.
fn defines_malloc(memory: &impl HeapMemory, path: &str) -> bool {
    let Ok(file) = memory.open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else { return false };
    object.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(b"malloc"))
}
