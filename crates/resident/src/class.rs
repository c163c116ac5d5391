//! The kinds of resident memory: one row each.

use serde::Serialize;

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $name:ident $key:literal $label:literal,)+) => {
        /// What a resident page is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Class {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name in JSON.
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            /// Its name in texts.
            pub fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }
        }
    };
}

classes! {
    /// Blocks that the program holds.
    LiveBlocks "live_blocks" "live malloc blocks",
    /// What malloc keeps beside blocks, and what it rounds sizes up by.
    HeadersRounding "headers_rounding" "headers and rounding",
    /// Whole free pages that `malloc_trim` gives back.
    FreeWholePages "free_whole_pages" "free, whole pages",
    /// Free bytes in pages that something else keeps.
    FreePinned "free_pinned" "free, pinned",
    /// Chunks in threads' caches, and what arenas keep at their tops.
    CachesTops "caches_tops" "thread caches, tops",
    /// glibc's heap, where its chunks are not looked at.
    GlibcHeap "glibc_heap" "malloc heap (glibc)",
    /// Blocks that the program holds, of an allocator that is not glibc's.
    AllocatorLive "allocator_live" "live blocks, another malloc",
    /// What such an allocator has besides: free pages, free blocks, its own tables.
    AllocatorSlack "allocator_slack" "slack, another malloc",
    /// The memory of an allocator that is not glibc's, where it is not known what is in it.
    OtherAllocator "other_allocator" "allocator",
    /// V8's pages.
    V8Heap "v8_heap" "V8 heap",
    /// CPython's own small-object memory.
    PythonArenas "python_arenas" "CPython arenas",
    /// The JVM's object heap.
    JvmHeap "jvm_heap" "JVM heap",
    /// What the JVM has besides: metaspace, compiled code, tables of its collector.
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
    /// Files that are mapped and are no code.
    Files "files" "files",
    /// Memory that is made to be shared.
    SharedMemory "shared_memory" "shared memory",
    /// Memory without a file to which the program gave a name.
    NamedAnonymous "named_anonymous" "named anonymous",
    /// What heapr has in a process that it records: its agent, and the buffers.
    Recorder "recorder" "heapr itself",
    /// The kernel's own pages in the process.
    Kernel "kernel" "kernel's pages",
    /// Nobody's.
    Unknown "unknown" "unknown",
}

/// How it is known what a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldBy {
    /// The mapping says it: its file, its name.
    Name,
    /// What stands in it has the form that only this owner's memory has.
    Contents,
    /// Where it lies.
    Place,
    /// Nothing else in the process is known to take such memory.
    Elimination,
}

/// A class in words; one of another version by its key.
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
