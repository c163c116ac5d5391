//! Lists what a process's own memory consists of, without a recording.

use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::facts::process_facts;
use crate::recorder::inside::Inside;
use crate::recorder::memory::holders;

/// Part of a process's own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPart {
    /// Name of the part.
    pub what: String,
    /// Bytes resident or swapped out.
    pub bytes: u64,
    /// True if blocks in this part would be recorded.
    pub is_recordable: bool,
}

/// Parts of a process's own memory, largest first. `None`: the process cannot be read, or has
/// ended.
#[must_use]
pub fn own_memory_of(pid: u32, inside: &Inside) -> Option<Vec<OwnPart>> {
    let look = MemoryLook::of(pid, 0, inside.go.is_some())?;
    let executable = process_facts::executable(pid);
    let is_hooked = inside.modules.iter().any(|module| !module.allocators.is_empty())
        || !look.malloc_libraries.is_empty();
    let mapped_bytes = look.mapped.iter().fold(0, |sum: u64, (_, _, bytes)| sum.saturating_add(*bytes));
    let mapped = match holders::of_files(&executable, &inside.modules) {
        Some(holder) => format!("mapped: {holder}"),
        None if is_hooked => "mapped: allocators inside".to_owned(),
        None => "mapped by the program or a library".to_owned(),
    };
    let part = |what: &str, bytes, is_recordable| OwnPart { what: what.to_owned(), bytes, is_recordable };
    let mut parts = vec![
        part("the C library's heap", look.heap_bytes, true),
        part("data of the program and its libraries", look.data_bytes, false),
        part("stacks", look.stack_bytes, false),
        part("Go's heap", look.go_bytes, inside.go.as_ref().is_some_and(|go| go.unreadable().is_none())),
        part(&mapped, mapped_bytes, is_hooked),
    ];
    parts.retain(|part| part.bytes > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    Some(parts)
}
