//! Names the owners of memory outside of recorded blocks, and the tools that show it.

use std::path::Path;

use heapr_known::runtimes::{self, Row, ShownBy};
use heapr_trace::PartKind;

use crate::recorder::inside::InsideModule;

/// End of a remark where only mappings can be recorded.
const MAPPINGS: &str = "--mmap records mappings with their stacks";

/// Returns the runtime that a file belongs to.
pub(super) fn runtime(path: &str) -> Option<&'static Row> {
    runtimes::of_file(&file_name(Path::new(path)))
}

/// Likely owner of the rest, as far as the files show it: an allocator whose functions have no
/// names, or a runtime in the process.
pub(super) fn of_files(executable: &str, inside: &[InsideModule]) -> Option<PartKind> {
    let likely = |row: &Row| PartKind::Likely { owners: vec![row.heap.to_owned()] };
    if let Some(module) = inside.iter().find(|module| !module.named_allocators.is_empty()) {
        let owners = module.named_allocators.clone();
        return Some(match runtime(&module.path.to_string_lossy()) {
            Some(row) => likely(row),
            None if module.is_stripped => PartKind::Stripped { owners, file: file_name(&module.path) },
            None => PartKind::Likely { owners },
        });
    }
    let paths = inside.iter().map(|module| module.path.to_string_lossy().into_owned());
    std::iter::once(executable.to_owned()).chain(paths).find_map(|path| runtime(&path)).map(likely)
}

/// Names of the embedded allocators whose blocks are recorded.
pub(super) fn allocators_of(inside: &[InsideModule]) -> Vec<String> {
    let mut names: Vec<String> =
        inside.iter().flat_map(|module| &module.allocators).map(|found| found.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Tool or option that would show the memory of some parts, as the end of a sentence.
pub(super) fn shown_by(executable: &str, inside: &[InsideModule], parts: &[&PartKind]) -> String {
    if parts.iter().any(|part| matches!(part, PartKind::GoHeap { .. })) {
        return "; heapr run has its runtime sample it".to_owned();
    }
    if parts.iter().any(|part| matches!(part, PartKind::BeforeAttach { .. })) {
        return "; heapr run records it from its start".to_owned();
    }
    let owners = || parts.iter().flat_map(|part| part.owners());
    for row in owners().filter_map(|owner| runtimes::of_heap(owner)) {
        if let ShownBy::WordsOrMappings(shows) = row.shown_by {
            return format!("; {shows} shows it, {MAPPINGS}");
        }
    }
    let paths = inside.iter().map(|module| module.path.to_string_lossy().into_owned());
    let files = std::iter::once(executable.to_owned()).chain(paths);
    let shown = files
        .filter_map(|path| Some((runtime(&path)?, path)))
        .find(|(row, _)| owners().any(|owner| owner == row.heap))
        .map(|(row, path)| runtimes::shown_by(&file_name(Path::new(&path)), row));
    match shown {
        // A runtime's own tool needs no symbols, so it is preferred.
        Some(ShownBy::Words(shows)) => format!("; {shows} shows it"),
        Some(ShownBy::WordsOrMappings(shows)) => format!("; {shows} shows it, {MAPPINGS}"),
        _ if inside.iter().any(|module| module.is_stripped && !module.named_allocators.is_empty()) => {
            format!(
                "; {MAPPINGS}, and its debug symbols (a -dbgsym package, or DEBUGINFOD_URLS) would let \
                 its blocks be recorded"
            )
        }
        Some(ShownBy::Mappings) | None => format!("; {MAPPINGS}"),
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(owner: &str, by: &str) -> PartKind {
        PartKind::Mapped { owners: vec![owner.to_owned()], by: by.to_owned() }
    }

    #[test]
    fn a_runtime_is_named_by_its_file() {
        let found = of_files("/usr/bin/luajit-2.1", &[]).unwrap();
        assert_eq!(found.to_string(), "likely LuaJIT's allocator");
        assert_eq!(of_files("/opt/server", &[]), None);
        let part = mapped("V8 heap", "node");
        assert_eq!(shown_by("/usr/bin/node", &[], &[&part]), "; heapr snapshot take PID shows it");
        assert_eq!(shown_by("/opt/server", &[], &[]), format!("; {MAPPINGS}"));
        let part = mapped("GHC's heap", "shellcheck");
        assert!(shown_by("/usr/bin/shellcheck", &[], &[&part]).starts_with("; +RTS -s shows it, --mmap"));
    }

    #[test]
    fn a_file_that_is_called_like_a_heap_is_not_taken_for_one() {
        let part = PartKind::Mapped { owners: Vec::new(), by: "Go's heap".to_owned() };
        assert_eq!(shown_by("/opt/server", &[], &[&part]), format!("; {MAPPINGS}"));
        let go = PartKind::GoHeap { is_sampled: false };
        assert_eq!(shown_by("/opt/server", &[], &[&go]), "; heapr run has its runtime sample it");
    }
}
