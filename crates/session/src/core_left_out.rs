//! Finds memory that a core file lacks, and its effect on what seems leaked.
//!
//! ```text
//! headers, list of files ──> left out: memory without a file, or shared memory of a file
//!     file exists here           searched; a reference found today is doubtful
//!     content is unavailable     could hold blocks that nothing else leads to: possible leaks
//! the program's data ──────> leads to pages without a mapping: a debugger leaves memory out so
//! ```

use std::collections::BTreeSet;

use heapr_known::machine::SMALLEST_PAGE_BYTES;
use heapr_native::{Area, BlockMap, LeakKind, Leaks, Verdicts};
use heapr_proc::page_bytes;
use heapr_proc::{CoreFile, LeftOut};
use heapr_trace::{EdgeGrade, HeapGraph, RootArea, RootClass, RootEdge};

/// Largest number of names in a note.
const NAMES_MAX: usize = 5;

/// Memory that a core file lacks.
pub(crate) struct MissingMemory {
    left_out: Vec<LeftOut>,
    /// Number of pages that data of modules refers to and that no mapping in the core covers.
    unnamed_count: usize,
}

impl MissingMemory {
    /// Finds what a core with known files lacks. `areas`: areas searched for references.
    pub(crate) fn of(core: &CoreFile, areas: &[Area]) -> Self {
        Self { left_out: core.left_out(), unnamed_count: unnamed_pages(core, areas).len() }
    }

    /// Returns memory of files that exist here, to be searched as well.
    pub(crate) fn areas(&self) -> Vec<Area> {
        let readable = self.left_out.iter().filter(|part| part.is_readable);
        readable
            .map(|part| Area { is_doubtful: true, ..Area::new(RootClass::LeftOut, range(part), &part.path) })
            .collect()
    }

    /// Returns one sentence for each kind of missing memory.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let sum = |parts: &[&LeftOut]| parts.iter().map(|part| part.end_avma - part.start_avma).sum::<u64>();
        let of_files = |is_readable: bool| -> Vec<&LeftOut> {
            let parts = self.left_out.iter();
            parts.filter(|part| !part.path.is_empty() && part.is_readable == is_readable).collect()
        };
        let nameless: Vec<&LeftOut> = self.left_out.iter().filter(|part| part.path.is_empty()).collect();
        if !nameless.is_empty() {
            notes.push(format!(
                "{} of memory without a file is not in the core file (MADV_DONTDUMP, or /proc/PID/coredump_filter): what only that \
                 could hold counts as possibly leaked",
                kib(sum(&nameless))
            ));
        }
        let gone = of_files(false);
        if !gone.is_empty() {
            notes.push(format!(
                "mapped files that are neither in the core file nor here: {} ({}): what only they could hold counts as possibly \
                 leaked",
                names(&gone),
                kib(sum(&gone))
            ));
        }
        let here = of_files(true);
        if !here.is_empty() {
            notes.push(format!(
                "mapped files that are not in the core file: {} ({}): they were read as they are now, and what only they hold counts \
                 as possibly leaked",
                names(&here),
                kib(sum(&here))
            ));
        }
        if self.unnamed_count > 0 {
            notes.push(format!(
                "data of the program leads to {} that the core file does not name: memory that was left out (gdb's gcore leaves out \
                 MADV_DONTDUMP without a word) or unmapped; what only that could hold counts as possibly leaked",
                if self.unnamed_count == 1 { "a page".to_owned() } else { format!("{} pages", self.unnamed_count) }
            ));
        }
        notes
    }

    /// Marks definite leaks as doubtful, because memory with unavailable content may hold them.
    pub(crate) fn hold_in_doubt(&self, graph: &mut HeapGraph, map: &BlockMap) {
        let mut unread: Vec<&LeftOut> = self.left_out.iter().filter(|part| !part.is_readable).collect();
        unread.sort_by_key(|part| std::cmp::Reverse(part.end_avma - part.start_avma));
        let area = graph.areas.len() as u32;
        graph.areas.extend(unread.iter().map(|part| area_of(range(part), &part.path)));
        if unread.is_empty() && self.unnamed_count > 0 {
            graph.areas.push(area_of((0, 0), "memory that nothing names"));
        }
        if graph.areas.len() as u32 == area {
            return;
        }
        let verdicts = Verdicts::of(graph, |_| false);
        let leaks = Leaks::of(graph, &verdicts, |node| map.asked_bytes(node), u64::from);
        let definite = leaks.leaks.iter().filter(|leak| leak.kind == LeakKind::Definite);
        graph.roots.extend(definite.map(|leak| RootEdge {
            area,
            offset_bytes: 0,
            target: leak.node,
            grade: EdgeGrade::DeadMemory,
        }));
    }
}

/// Mappings consist of whole pages.
fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes / 1024)
}

fn range(part: &LeftOut) -> (u64, u64) {
    (part.start_avma, part.end_avma)
}

fn area_of((start_avma, end_avma): (u64, u64), name: &str) -> RootArea {
    RootArea { class: RootClass::LeftOut, start_avma, end_avma, tid: 0, name: name.to_owned() }
}

fn names(parts: &[&LeftOut]) -> String {
    let all: BTreeSet<&str> = parts.iter().map(|part| part.path.as_str()).collect();
    let mut shown: Vec<String> = all.iter().take(NAMES_MAX).map(|name| (*name).to_owned()).collect();
    if all.len() > NAMES_MAX {
        shown.push(format!("{} more", all.len() - NAMES_MAX));
    }
    shown.join(", ")
}

/// Starts of pages that the program's data refers to and that no mapping in the core covers.
fn unnamed_pages(core: &CoreFile, areas: &[Area]) -> BTreeSet<u64> {
    if core.names_all_mappings() {
        return BTreeSet::new();
    }
    // Only the program's own data: the loader and the C library hold addresses that were unmapped
    // long ago.
    let is_own = |area: &&Area| {
        area.root.class == RootClass::Global && core.executable_here() == Some(area.root.name.as_str())
    };
    let mappings = core.mappings();
    let limit_avma = core.machine().address_limit - SMALLEST_PAGE_BYTES;
    let first_avma = mappings.first().map_or(0, |mapping| mapping.start_avma);
    let is_unnamed = |word: u64| {
        let place = mappings.partition_point(|mapping| mapping.end_avma <= word);
        let is_mapped = mappings.get(place).is_some_and(|mapping| mapping.start_avma <= word);
        !is_mapped
    };
    let mut found = BTreeSet::new();
    for &(start_avma, end_avma) in areas.iter().filter(is_own).flat_map(|area| &area.pieces) {
        let mut words = vec![0; usize::try_from(end_avma - start_avma).unwrap_or(0)];
        let count = core.read_memory(start_avma, &mut words);
        for word in words[..count].as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            if word.is_multiple_of(page_bytes())
                && (first_avma..limit_avma).contains(&word)
                && is_unnamed(word)
            {
                found.insert(word);
            }
        }
    }
    found
}
