//! Lists the parts of a process's own memory, without a recording.

use heapr_resident::Class;
use heapr_trace::PartKind;

use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::facts::process_facts;
use crate::recorder::inside::Inside;
use crate::recorder::memory::holders;

/// Part of a process's own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPart {
    /// Name of the part.
    pub name: String,
    /// Bytes resident or swapped out.
    pub bytes: u64,
    /// Whether blocks lie there, and are recorded.
    pub blocks: BlocksThere,
}

/// Blocks in a part of a process's own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlocksThere {
    /// Blocks that a recording would have.
    Recorded,
    /// Blocks that a recording would not have.
    Unseen,
    /// No blocks: data and stacks.
    None,
}

impl BlocksThere {
    fn recorded_if(is_recordable: bool) -> Self {
        if is_recordable { Self::Recorded } else { Self::Unseen }
    }
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
    let of_go = inside.go.as_ref().is_some_and(|go| go.unreadable().is_none());
    let part = |name: &str, bytes, blocks| OwnPart { name: name.to_owned(), bytes, blocks };
    let mut parts = vec![
        part(Class::GlibcHeap.label(), look.heap_bytes, BlocksThere::Recorded),
        part(&PartKind::WrittenData.to_string(), look.data_bytes, BlocksThere::None),
        part(&PartKind::ThreadStacks.to_string(), look.stack_bytes, BlocksThere::None),
        part(Class::GoHeap.label(), look.go_bytes, BlocksThere::recorded_if(of_go)),
        part(&mapped, mapped_bytes, BlocksThere::recorded_if(is_hooked)),
    ];
    parts.retain(|part| part.bytes > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use heapr_known::runtimes::{self, Runtime};

    use super::*;

    #[test]
    fn recordings_and_the_account_of_pages_have_the_same_words() {
        for (kind, class) in [
            (PartKind::WrittenData, Class::WrittenData),
            (PartKind::ThreadStacks, Class::ThreadStacks),
            (PartKind::GoHeap { is_sampled: false }, Class::GoHeap),
            (PartKind::GoRuntime, Class::GoRuntime),
        ] {
            assert_eq!(kind.to_string(), class.label());
        }
        for (runtime, class) in [
            (Runtime::Node, Class::V8Heap),
            (Runtime::Jvm, Class::JvmHeap),
            (Runtime::Python, Class::PythonArenas),
        ] {
            let row = runtimes::RUNTIMES.iter().find(|row| row.runtime == runtime).unwrap();
            assert_eq!(row.heap, class.label());
        }
    }
}
