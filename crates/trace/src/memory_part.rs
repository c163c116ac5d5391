//! Parts of a process's own memory: what each of them is, and its text in the file.
//!
//! The file stores a part as text, so that a reader of any version can print it. A reader of this
//! version turns the texts, those of older writers too, back into kinds.

use std::fmt;

use crate::StackIndex;

/// A part of a [`crate::MemoryAccount`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// Kind of the memory.
    pub kind: PartKind,
    /// Size of the part.
    pub bytes: u64,
    /// Stack that mapped the memory, if known.
    pub stack: StackIndex,
    /// True if the part has a name and lies in no recorded block.
    pub is_unseen: bool,
}

impl MemoryPart {
    /// Approximate overhead of the C library per block in bytes; counted as part of recorded
    /// blocks.
    pub const BESIDE_BLOCK_BYTES: u64 = 16;
}

/// Kind of a part of a process's own memory. Its text is that of `heapr explain` for such memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// Recorded blocks, with the allocator's overhead for each.
    RecordedBlocks,
    /// Memory of the allocators of recorded blocks that lies in no recorded block.
    FreeInAllocator,
    /// Written data of programs and libraries, and their data that began as zeros.
    WrittenData,
    /// Stacks of threads.
    ThreadStacks,
    /// Go's heap.
    GoHeap {
        /// Whether Go's runtime samples it into the recording.
        is_sampled: bool,
    },
    /// Memory of Go's runtime outside of its heap.
    GoRuntime,
    /// Mappings made by a known module.
    Mapped {
        /// Heaps and allocators that the module brings; empty if none is known.
        owners: Vec<String>,
        /// File name of the module.
        by: String,
    },
    /// Mappings whose making was not recorded, with the only likely owner.
    Likely {
        /// Heaps and allocators.
        owners: Vec<String>,
    },
    /// Mappings that are likely those of an allocator in a file without symbols.
    Stripped {
        /// Allocators.
        owners: Vec<String>,
        /// Name of the file.
        file: String,
    },
    /// Memory that recorded allocators had mapped before the attach.
    BeforeAttach {
        /// Allocators.
        owners: Vec<String>,
    },
    /// Text of another version.
    Other(String),
}

const RECORDED_BLOCKS: &str = "recorded blocks";
const FREE_IN_ALLOCATOR: &str = "free in the allocator";
const WRITTEN_DATA: &str = "written data, bss";
const THREAD_STACKS: &str = "thread stacks";
const GO_HEAP: &str = "Go heap";
const GO_HEAP_SAMPLED: &str = "Go heap, sampled by its runtime";
const GO_RUNTIME: &str = "Go runtime";
const MAPPED_BY: &str = "mapped by ";
const LIKELY: &str = "likely ";
const AND: &str = " and ";
const IN: &str = " in ";
const STRIPPED: &str = ", which is stripped";
const BEFORE_ATTACH: &str = ", mapped before it was attached to";

/// Texts of parts by earlier writers.
const EARLIER_PARTS: [(&str, PartKind); 5] = [
    ("data of the program and its libraries", PartKind::WrittenData),
    ("stacks", PartKind::ThreadStacks),
    ("Go's heap", PartKind::GoHeap { is_sampled: false }),
    ("Go's heap, sampled by its runtime", PartKind::GoHeap { is_sampled: true }),
    ("Go's runtime", PartKind::GoRuntime),
];
/// Names of owners by earlier writers, and their names in `heapr explain`.
const EARLIER_OWNERS: [(&str, &str); 4] = [
    ("V8's heap", "V8 heap"),
    ("V8's heap and PartitionAlloc", "V8 heap and PartitionAlloc"),
    ("the Java virtual machine's heap", "JVM heap"),
    ("Python's object allocator", "CPython arenas"),
];

impl PartKind {
    /// Heaps and allocators that the memory belongs to, as far as they are known.
    #[must_use]
    pub fn owners(&self) -> &[String] {
        match self {
            Self::Mapped { owners, .. }
            | Self::Likely { owners }
            | Self::Stripped { owners, .. }
            | Self::BeforeAttach { owners } => owners,
            _ => &[],
        }
    }

    /// Whether the size of the part is computed from recorded blocks.
    #[must_use]
    pub fn is_of_blocks(&self) -> bool {
        matches!(self, Self::RecordedBlocks | Self::FreeInAllocator)
    }

    /// Returns the kind with this text in a file. Several owners are read as one name.
    pub(crate) fn of_text(text: String) -> Self {
        let owners = |name: &str| {
            let earlier = EARLIER_OWNERS.iter().find(|(earlier, _)| *earlier == name);
            vec![earlier.map_or(name, |&(_, present)| present).to_owned()]
        };
        match text.as_str() {
            RECORDED_BLOCKS => return Self::RecordedBlocks,
            FREE_IN_ALLOCATOR => return Self::FreeInAllocator,
            WRITTEN_DATA => return Self::WrittenData,
            THREAD_STACKS => return Self::ThreadStacks,
            GO_HEAP => return Self::GoHeap { is_sampled: false },
            GO_HEAP_SAMPLED => return Self::GoHeap { is_sampled: true },
            GO_RUNTIME => return Self::GoRuntime,
            _ => {}
        }
        if let Some((_, kind)) = EARLIER_PARTS.iter().find(|(earlier, _)| *earlier == text) {
            return kind.clone();
        }
        if let Some(name) = text.strip_suffix(BEFORE_ATTACH) {
            return Self::BeforeAttach { owners: owners(name) };
        }
        if let Some((name, file)) = text.strip_suffix(STRIPPED).and_then(|rest| rest.rsplit_once(IN)) {
            return Self::Stripped { owners: owners(name), file: file.to_owned() };
        }
        if let Some(by) = text.strip_prefix(MAPPED_BY) {
            return Self::Mapped { owners: Vec::new(), by: by.to_owned() };
        }
        if let Some((name, by)) = text.split_once(&format!(", {MAPPED_BY}")) {
            return Self::Mapped { owners: owners(name), by: by.to_owned() };
        }
        match text.strip_prefix(LIKELY) {
            Some(name) => Self::Likely { owners: owners(name) },
            None => Self::Other(text),
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordedBlocks => out.write_str(RECORDED_BLOCKS),
            Self::FreeInAllocator => out.write_str(FREE_IN_ALLOCATOR),
            Self::WrittenData => out.write_str(WRITTEN_DATA),
            Self::ThreadStacks => out.write_str(THREAD_STACKS),
            Self::GoHeap { is_sampled: false } => out.write_str(GO_HEAP),
            Self::GoHeap { is_sampled: true } => out.write_str(GO_HEAP_SAMPLED),
            Self::GoRuntime => out.write_str(GO_RUNTIME),
            Self::Mapped { owners, by } if owners.is_empty() => write!(out, "{MAPPED_BY}{by}"),
            Self::Mapped { owners, by } => write!(out, "{}, {MAPPED_BY}{by}", owners.join(AND)),
            Self::Likely { owners } => write!(out, "{LIKELY}{}", owners.join(AND)),
            Self::Stripped { owners, file } => write!(out, "{}{IN}{file}{STRIPPED}", owners.join(AND)),
            Self::BeforeAttach { owners } => write!(out, "{}{BEFORE_ATTACH}", owners.join(AND)),
            Self::Other(text) => out.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_back_from_its_text() {
        let (owners, by) = (|| vec!["mimalloc and jemalloc".to_owned()], || "a in b".to_owned());
        for kind in [
            PartKind::RecordedBlocks,
            PartKind::FreeInAllocator,
            PartKind::WrittenData,
            PartKind::ThreadStacks,
            PartKind::GoHeap { is_sampled: false },
            PartKind::GoHeap { is_sampled: true },
            PartKind::GoRuntime,
            PartKind::Mapped { owners: Vec::new(), by: by() },
            PartKind::Mapped { owners: owners(), by: by() },
            PartKind::Likely { owners: owners() },
            PartKind::Stripped { owners: owners(), file: "lib.so".to_owned() },
            PartKind::BeforeAttach { owners: owners() },
            PartKind::Other("dust".to_owned()),
        ] {
            assert_eq!(PartKind::of_text(kind.to_string()), kind, "{kind}");
        }
    }

    #[test]
    fn texts_of_earlier_writers_are_understood() {
        for (text, expected) in [
            ("stacks", "thread stacks"),
            ("data of the program and its libraries", "written data, bss"),
            ("Go's heap, sampled by its runtime", "Go heap, sampled by its runtime"),
            ("V8's heap, mapped by node", "V8 heap, mapped by node"),
            ("likely the Java virtual machine's heap", "likely JVM heap"),
            ("Ruby's heap of objects, mapped by libruby.so", "Ruby's heap of objects, mapped by libruby.so"),
        ] {
            let kind = PartKind::of_text(text.to_owned());
            assert_eq!(kind.to_string(), expected);
            assert!(!matches!(kind, PartKind::Other(_)), "{text}");
        }
    }
}
