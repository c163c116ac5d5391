//! Names the holders of memory outside of recorded blocks, and the tools that show it.

use std::path::Path;

use heapr_known::runtimes::{self, ShownBy};

use crate::recorder::inside::InsideModule;

/// Returns the name of the heap of a file's runtime, and what shows it.
pub(super) fn runtime(path: &str) -> Option<(&'static str, ShownBy)> {
    let file = file_name(Path::new(path));
    let row = runtimes::of_file(&file)?;
    Some((row.heap, runtimes::shown_by(&file, row)))
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
    if known.is_none_or(|(_, shows)| shows == ShownBy::Mappings)
        && inside.iter().any(|module| module.is_stripped && !module.named_allocators.is_empty())
    {
        return "; --mmap records mappings with their stacks, and its debug symbols (a -dbgsym package, \
                or DEBUGINFOD_URLS) would let its blocks be recorded"
            .to_owned();
    }
    match known {
        Some((_, ShownBy::Mappings)) | None => "; --mmap records mappings with their stacks".to_owned(),
        Some((_, ShownBy::Words(shows))) => format!("; {shows} shows it"),
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
