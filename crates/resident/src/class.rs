//! Classes of resident memory, one row each.

use serde::Serialize;

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $name:ident $key:literal $label:literal,)+) => {
        /// Class of a resident page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Class {
            /// All classes, in the order of display.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Name in JSON.
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            /// Name in texts.
            pub fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }
        }
    };
}

classes! {
    /// Blocks that the program holds.
    LiveBlocks "live_blocks" "live malloc blocks",
    /// Headers of malloc's chunks, and bytes by which sizes are rounded up.
    HeadersRounding "headers_rounding" "headers and rounding",
    /// Whole free pages, which `malloc_trim` returns.
    FreeWholePages "free_whole_pages" "free, whole pages",
    /// Free bytes in pages that other data retains.
    FreePinned "free_pinned" "free, pinned",
    /// Chunks in thread caches, and the unused tops of arenas.
    CachesTops "caches_tops" "thread caches, tops",
    /// glibc's heap, if its chunks were not read.
    GlibcHeap "glibc_heap" "malloc heap (glibc)",
    /// Live blocks of an allocator that is not glibc's.
    AllocatorLive "allocator_live" "live blocks, another malloc",
    /// Slack of such an allocator: free pages, free blocks, its own tables.
    AllocatorSlack "allocator_slack" "slack, another malloc",
    /// Memory of an allocator that is not glibc's, with unknown contents.
    OtherAllocator "other_allocator" "allocator",
    /// V8's pages.
    V8Heap "v8_heap" "V8 heap",
    /// CPython's own small-object memory.
    PythonArenas "python_arenas" "CPython arenas",
    /// The JVM's object heap.
    JvmHeap "jvm_heap" "JVM heap",
    /// Memory of the JVM besides its heap: metaspace, compiled code, tables of its collector.
    JvmOther "jvm_other" "JVM, besides its heap",
    /// Go's object heap.
    GoHeap "go_heap" "Go heap",
    /// Tables of Go's runtime.
    GoRuntime "go_runtime" "Go runtime",
    /// Threads' stacks, the first thread's too.
    ThreadStacks "thread_stacks" "thread stacks",
    /// Instructions.
    Code "code" "code",
    /// Constants and tables of programs and libraries.
    ReadOnlyData "read_only_data" "read-only data",
    /// Data of programs and libraries that was written, and data that began as zeros.
    WrittenData "written_data" "written data, bss",
    /// Mapped files without code.
    Files "files" "files",
    /// Memory that was mapped to be shared.
    SharedMemory "shared_memory" "shared memory",
    /// Anonymous memory that the program gave a name.
    NamedAnonymous "named_anonymous" "named anonymous",
    /// heapr's own memory in a process that it records: the agent and the buffers.
    Recorder "recorder" "heapr itself",
    /// Pages that the kernel put into the process.
    Kernel "kernel" "kernel's pages",
    /// Memory of an unknown owner.
    Unknown "unknown" "unknown",
}

/// Evidence of a page's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// File or name of the mapping.
    Name,
    /// Contents of a form that only this owner's memory has.
    Contents,
    /// Address.
    Place,
    /// Elimination: no other known owner in the process takes such memory.
    Elimination,
}

/// Name of a class in texts; made from the key for a class of another version.
pub fn class_label(key: &str) -> String {
    let known = Class::ALL.iter().find(|class| class.key() == key);
    known.map_or_else(|| key.replace('_', " "), |class| class.label().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_json_has() {
        for class in Class::ALL {
            assert_eq!(serde_name(*class), class.key());
        }
    }

    fn serde_name(class: Class) -> String {
        let mut name = String::new();
        for letter in format!("{class:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}
