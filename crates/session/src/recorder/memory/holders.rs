//! Names the holders of memory outside of recorded blocks, and the tools that show it.

use std::path::Path;

use crate::recorder::inside::InsideModule;

/// Programs and libraries that map a heap of their own: prefix of the file name, name of the heap,
/// tool that shows it.
const RUNTIMES: [(&str, &str, &str); 30] = [
    ("libjvm.so", "the Java virtual machine's heap", "jcmd PID GC.heap_info"),
    ("node", "V8's heap", "heapr snapshot take PID"),
    ("libnode", "V8's heap", "heapr snapshot take PID"),
    ("deno", "V8's heap", "heapr snapshot take PID"),
    ("workerd", "V8's heap", "heapr snapshot take PID"),
    ("chrom", "V8's heap and PartitionAlloc", "heapr snapshot take PID"),
    ("bun", "JavaScriptCore's heap and mimalloc", "bun --inspect"),
    ("libluajit", "LuaJIT's allocator", "--mmap"),
    ("luajit", "LuaJIT's allocator", "--mmap"),
    ("php", "PHP's memory manager", "the variable USE_ZEND_ALLOC=0"),
    ("libphp", "PHP's memory manager", "the variable USE_ZEND_ALLOC=0"),
    // Builds without the interpreter's lock (free-threaded) cannot use malloc instead.
    ("python3.13t", "Python's object allocator", "--mmap"),
    ("python3.14t", "Python's object allocator", "--mmap"),
    ("libpython3.13t", "Python's object allocator", "--mmap"),
    ("libpython3.14t", "Python's object allocator", "--mmap"),
    ("python", "Python's object allocator", "the variable PYTHONMALLOC=malloc"),
    ("libpython", "Python's object allocator", "the variable PYTHONMALLOC=malloc"),
    ("beam", "Erlang's carriers", "erlang:memory()"),
    ("dotnet", ".NET's heap", "dotnet-gcdump"),
    ("libcoreclr", ".NET's heap", "dotnet-gcdump"),
    ("libclrgc", ".NET's heap", "dotnet-gcdump"),
    ("mono", "Mono's heap", "--mmap"),
    ("libmono", "Mono's heap", "--mmap"),
    ("ruby", "Ruby's heap of objects", "ObjectSpace"),
    ("libruby", "Ruby's heap of objects", "ObjectSpace"),
    ("libxul", "Firefox' allocator", "about:memory"),
    ("libc-client", "c-client's memory", "--mmap"),
    ("cc1", "the compiler's collected pages", "--mmap"),
    ("memcheck", "Valgrind's own memory", "valgrind --stats=yes"),
    ("guile", "Guile's collected heap", "--mmap"),
];

/// Name of the heap that a file maps, and the tool that shows it.
pub(super) fn runtime(path: &str) -> Option<(&'static str, &'static str)> {
    let file = file_name(Path::new(path));
    let found = RUNTIMES.iter().find(|(start, ..)| file.starts_with(start));
    found.map(|(_, what, shows)| (*what, *shows))
}

/// Likely holder of the rest, as far as the files show it: an allocator whose functions have no
/// names, or a runtime in the process.
pub(super) fn of_files(executable: &str, inside: &[InsideModule]) -> Option<String> {
    if let Some(module) = inside.iter().find(|module| !module.named_allocators.is_empty()) {
        let allocators = module.named_allocators.join(" and ");
        let file = file_name(&module.path);
        return Some(match runtime(&module.path.to_string_lossy()) {
            Some((what, _)) => format!("likely {what}"),
            None if module.is_stripped => format!("{allocators} in {file}, which is stripped"),
            None => format!("likely {allocators}"),
        });
    }
    let paths = inside.iter().map(|module| module.path.to_string_lossy().into_owned());
    let found = std::iter::once(executable.to_owned()).chain(paths).find_map(|path| runtime(&path));
    found.map(|(what, _)| format!("likely {what}"))
}

/// Label of memory that an allocator had mapped before the attach.
pub(super) const BEFORE_ATTACH: &str = "mapped before it was attached to";

/// Names of the embedded allocators whose blocks are recorded.
pub(super) fn allocators_of(inside: &[InsideModule]) -> String {
    let mut names: Vec<&str> =
        inside.iter().flat_map(|module| &module.allocators).map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" and ")
}

/// Tool or option that would show the memory, as the end of a sentence.
pub(super) fn shown_by(executable: &str, inside: &[InsideModule], parts: &[String]) -> String {
    if parts.iter().any(|part| part.contains("Go's heap")) {
        return "; heapr run has its runtime sample it".to_owned();
    }
    if parts.iter().any(|part| part.contains(BEFORE_ATTACH)) {
        return "; heapr run records it from its start".to_owned();
    }
    if parts.iter().any(|part| part.contains("GHC's heap")) {
        return "; +RTS -s shows it, --mmap records mappings with their stacks".to_owned();
    }
    if parts.iter().any(|part| part.contains("OCaml's heap")) {
        return "; OCAMLRUNPARAM=v=0x400 shows it, --mmap records mappings with their stacks".to_owned();
    }
    let paths = inside.iter().map(|module| module.path.to_string_lossy().into_owned());
    let files = std::iter::once(executable.to_owned()).chain(paths);
    let known = files
        .filter_map(|path| runtime(&path))
        .find(|(what, _)| parts.iter().any(|part| part.contains(what)));
    // A runtime's own tool needs no symbols, so it is preferred.
    if known.is_none_or(|(_, shows)| shows == "--mmap")
        && inside.iter().any(|module| module.is_stripped && !module.named_allocators.is_empty())
    {
        return "; --mmap records mappings with their stacks, and its debug symbols (a -dbgsym package, \
                or DEBUGINFOD_URLS) would let its blocks be recorded"
            .to_owned();
    }
    match known {
        Some((_, "--mmap")) | None => "; --mmap records mappings with their stacks".to_owned(),
        Some((_, shows)) => format!("; {shows} shows it"),
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_named_by_its_file() {
        assert_eq!(of_files("/usr/bin/luajit-2.1", &[]).as_deref(), Some("likely LuaJIT's allocator"));
        assert_eq!(of_files("/opt/server", &[]), None);
        let parts = ["V8's heap, mapped by node".to_owned()];
        assert_eq!(shown_by("/usr/bin/node", &[], &parts), "; heapr snapshot take PID shows it");
        assert!(shown_by("/opt/server", &[], &[]).contains("--mmap"));
        let parts = ["GHC's heap, mapped by shellcheck".to_owned()];
        assert!(shown_by("/usr/bin/shellcheck", &[], &parts).contains("+RTS -s"));
    }
}
