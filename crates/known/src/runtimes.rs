//! Language runtimes and programs with a heap of their own, by the names of their files.

/// Kind of a runtime, as far as heapr treats it in a way of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// V8 in Node.js, also embedded in another executable.
    Node,
    /// V8 in Deno.
    Deno,
    /// V8 in Electron, or in a program built on it.
    Electron,
    /// V8 in Chrome, Chromium and browsers made of it.
    Chrome,
    /// V8 and its inspector in another program, such as workerd.
    Embedder,
    /// JavaScriptCore in Bun.
    Bun,
    /// HotSpot or another Java virtual machine.
    Jvm,
    /// CPython.
    Python,
    /// Ruby, the implementation in C.
    Ruby,
    /// Go, which is recognised by its heap's addresses.
    Go,
    /// Any other, or an unknown program.
    Other,
}

impl Runtime {
    /// True if its engine is V8.
    #[must_use]
    pub const fn is_v8(self) -> bool {
        matches!(self, Self::Node | Self::Deno | Self::Electron | Self::Chrome | Self::Embedder)
    }
}

/// Tool that shows a runtime's heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy {
    /// A command, variable or page of the runtime, or a command of heapr.
    Words(&'static str),
    /// A variable or option of the runtime, besides heapr's option `--mmap`.
    WordsOrMappings(&'static str),
    /// heapr's option `--mmap`: each mapping with its stack.
    Mappings,
}

/// A runtime, and the files by which it is recognised.
#[derive(Debug)]
pub struct Row {
    /// Kind of the runtime.
    pub runtime: Runtime,
    /// Names of its program and libraries, without version: see [`is_named`].
    pub files: &'static [&'static str],
    /// Name of its heap in a sentence.
    pub heap: &'static str,
    /// Tool that shows the heap.
    pub shown_by: ShownBy,
    /// Name of its own allocator in the table of embedded allocators, or empty.
    pub allocator: &'static str,
    /// Text of that allocator in a stripped file; empty if no such text is known.
    pub allocator_text: &'static str,
}

const fn row(runtime: Runtime, files: &'static [&'static str], heap: &'static str, shown_by: ShownBy) -> Row {
    Row { runtime, files, heap, shown_by, allocator: "", allocator_text: "" }
}

impl Row {
    /// Returns the row with the runtime's allocator and its text.
    const fn with_allocator(self, allocator: &'static str, allocator_text: &'static str) -> Self {
        Self { allocator, allocator_text, ..self }
    }
}

const V8_HEAP: &str = "V8 heap";
const TAKE: ShownBy = ShownBy::Words("heapr snapshot take PID");

/// All runtimes that are recognised by a file.
pub const RUNTIMES: &[Row] = &[
    row(Runtime::Jvm, &["libjvm"], "JVM heap", ShownBy::Words("jcmd PID GC.heap_info")),
    row(Runtime::Node, &["node", "nodejs", "iojs", "libnode"], V8_HEAP, TAKE),
    row(Runtime::Deno, &["deno", "denort"], V8_HEAP, TAKE),
    row(Runtime::Embedder, &["workerd", "libv8", "libcef"], V8_HEAP, TAKE),
    row(Runtime::Electron, &["electron"], V8_HEAP, TAKE),
    row(
        Runtime::Chrome,
        &[
            "chrome",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "msedge",
            "brave",
            "headless_shell",
            "chrome-headless-shell",
        ],
        "V8 heap and PartitionAlloc",
        TAKE,
    ),
    row(
        Runtime::Bun,
        &["bun", "bunx"],
        "JavaScriptCore's heap and mimalloc",
        ShownBy::Words("bun --inspect"),
    ),
    row(Runtime::Other, &["luajit", "libluajit"], "LuaJIT's allocator", ShownBy::Mappings)
        .with_allocator("LuaJIT's allocator", "LuaJIT 2."),
    row(
        Runtime::Other,
        &["php", "libphp"],
        "PHP's memory manager",
        ShownBy::Words("the variable USE_ZEND_ALLOC=0"),
    ),
    row(
        Runtime::Python,
        &["python", "libpython"],
        "CPython arenas",
        ShownBy::Words("the variable PYTHONMALLOC=malloc"),
    )
    .with_allocator("Python's object allocator", "# arenas allocated total"),
    row(Runtime::Other, &["beam"], "Erlang's carriers", ShownBy::Words("erlang:memory()")),
    row(
        Runtime::Other,
        &["dotnet", "libcoreclr", "libclrgc"],
        ".NET's heap",
        ShownBy::Words("dotnet-gcdump"),
    ),
    row(Runtime::Other, &["mono", "libmono", "libmonosgen"], "Mono's heap", ShownBy::Mappings),
    row(Runtime::Ruby, &["ruby", "libruby"], "Ruby's heap of objects", TAKE),
    row(Runtime::Other, &["libxul"], "Firefox' allocator", ShownBy::Words("about:memory")),
    row(Runtime::Other, &["libc-client"], "c-client's memory", ShownBy::Mappings),
    row(Runtime::Other, &["cc1", "cc1plus"], "the compiler's collected pages", ShownBy::Mappings),
    row(Runtime::Other, &["memcheck"], "Valgrind's own memory", ShownBy::Words("valgrind --stats=yes")),
    row(Runtime::Other, &["guile"], "Guile's collected heap", ShownBy::Mappings),
    // Programs of these have any name: they are recognised by texts in their files.
    row(Runtime::Other, &[], "GHC's heap", ShownBy::WordsOrMappings("+RTS -s")),
    row(Runtime::Other, &[], "OCaml's heap", ShownBy::WordsOrMappings("OCAMLRUNPARAM=v=0x400")),
];

/// Returns the runtime that a file belongs to, by its name without folders.
#[must_use]
pub fn of_file(file: &str) -> Option<&'static Row> {
    RUNTIMES.iter().find(|row| row.files.iter().any(|name| is_named(file, name)))
}

/// Returns the runtime with a heap of this name.
#[must_use]
pub fn of_heap(heap: &str) -> Option<&'static Row> {
    RUNTIMES.iter().find(|row| row.heap == heap)
}

/// Returns the kind of the runtime that a library belongs to, by its file's name.
#[must_use]
pub fn of_library(file: &str) -> Option<Runtime> {
    let row = of_file(file).filter(|_| file.starts_with("lib"))?;
    Some(row.runtime)
}

/// Returns the kind of the runtime whose program has exactly this name, with a version at most:
/// `node-22` and not `node-exporter`.
#[must_use]
pub fn of_program(file: &str) -> Option<Runtime> {
    let is_it = |name: &&str| {
        let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
        file.strip_prefix(*name).is_some_and(is_version)
    };
    RUNTIMES.iter().find(|row| row.files.iter().any(is_it)).map(|row| row.runtime)
}

/// Returns the tool that shows the heap of a runtime's file. Python without the interpreter's lock
/// (`python3.14t`) has no other object allocator that could be chosen.
#[must_use]
pub fn shown_by(file: &str, row: &Row) -> ShownBy {
    let is_free_threaded = || {
        let stem = file.split(".so").next().unwrap_or(file);
        row.runtime == Runtime::Python
            && stem.strip_suffix('t').is_some_and(|rest| rest.ends_with(|last: char| last.is_ascii_digit()))
    };
    if is_free_threaded() { ShownBy::Mappings } else { row.shown_by }
}

/// True for a name that is followed by nothing, a version or an extension: `libnode.so.108`,
/// `python3.11`, `php-fpm8.2`.
#[must_use]
pub fn is_named(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|letter: char| letter.is_ascii_digit() || ".-".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(file: &str) -> Option<&'static str> {
        of_file(file).map(|row| row.heap)
    }

    #[test]
    fn a_runtime_is_recognised_with_and_without_a_version() {
        for (file, expected) in [
            ("libjvm.so", "JVM heap"),
            ("libnode.so.108", V8_HEAP),
            ("luajit-2.1", "LuaJIT's allocator"),
            ("php-fpm8.2", "PHP's memory manager"),
            ("libphp8.2.so", "PHP's memory manager"),
            ("libpython3.11.so.1.0", "CPython arenas"),
            ("beam.smp", "Erlang's carriers"),
            ("mono-sgen", "Mono's heap"),
            ("libmonosgen-2.0.so.1", "Mono's heap"),
            ("libruby-3.1.so.3.1", "Ruby's heap of objects"),
            ("cc1plus", "the compiler's collected pages"),
            ("memcheck-amd64-linux", "Valgrind's own memory"),
        ] {
            assert_eq!(heap(file), Some(expected), "{file}");
        }
        assert_eq!(heap("server"), None);
        assert_eq!(
            (heap("nodemon"), heap("node_exporter"), heap("chrome_crashpad_handler")),
            (None, None, None)
        );
    }

    #[test]
    fn free_threaded_python_of_any_version_is_shown_by_its_mappings() {
        for (file, expected) in [
            ("python3.13t", ShownBy::Mappings),
            ("libpython3.15t.so.1.0", ShownBy::Mappings),
            ("python3.13", ShownBy::Words("the variable PYTHONMALLOC=malloc")),
        ] {
            assert_eq!(of_file(file).map(|row| shown_by(file, row)), Some(expected), "{file}");
        }
    }

    #[test]
    fn a_library_is_no_program() {
        assert_eq!(of_library("libnode.so.108"), Some(Runtime::Node));
        assert_eq!(of_library("libcef.so"), Some(Runtime::Embedder));
        assert_eq!((of_library("node"), of_library("libcurl.so.4")), (None, None));
    }

    #[test]
    fn a_program_has_the_name_and_a_version_at_most() {
        assert_eq!(of_program("node-22"), Some(Runtime::Node));
        assert_eq!(of_program("bunx"), Some(Runtime::Bun));
        assert_eq!(of_program("node_exporter"), None);
        assert_eq!(of_program("chrome-headless-shell"), Some(Runtime::Chrome));
    }
}
