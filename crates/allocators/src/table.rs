//! The table of allocators: `allocators.txt`, and rows added by a user.

use std::sync::LazyLock;

use crate::grammar::{self, ParseError};
use crate::row::Allocator;

/// All allocators that are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// Allocators in order of precedence: the first one that names a function owns it.
    pub allocators: Vec<Allocator>,
}

pub(crate) const OWN: &str = include_str!("allocators.txt");
/// Rows of [`OWN`], parsed once.
static OWN_ROWS: LazyLock<Vec<Allocator>> = LazyLock::new(|| grammar::parse(OWN).unwrap_or_default());

/// Separate heaps whose allocators can be sampled at little cost. Blocks of the others lie in
/// memory from other allocators, or their functions jump to further ones (PHP's). No call of such a
/// function can be counted at its entry.
pub(crate) const SAMPLED_HEAPS: [&str; 1] = ["python"];

impl Table {
    /// Creates the table, with the rows of a user's texts before the built-in ones.
    ///
    /// # Errors
    /// Returns an error if a line of a text is invalid.
    pub fn with(texts: &[String]) -> Result<Self, ParseError> {
        let mut allocators = Vec::new();
        for text in texts {
            allocators.extend(grammar::parse(text)?);
        }
        allocators.extend_from_slice(&OWN_ROWS);
        Ok(Self { allocators })
    }

    /// Checks a user's texts for [`Self::with`].
    ///
    /// # Errors
    /// Returns an error if a line of a text is invalid.
    pub fn check(texts: &[String]) -> Result<(), ParseError> {
        texts.iter().try_for_each(|text| grammar::parse(text).map(drop))
    }

    /// Table for a session of samples, in which all blocks are of the main heap. Allocators with
    /// separate heaps are removed, except for those of [`SAMPLED_HEAPS`].
    #[must_use]
    pub fn of_main_heap(mut self) -> Self {
        let is_sampled = |heap: &str| heap.is_empty() || SAMPLED_HEAPS.contains(&heap);
        self.allocators.retain(|allocator| is_sampled(&allocator.heap));
        self.allocators.iter_mut().for_each(|allocator| allocator.heap.clear());
        self
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { allocators: OWN_ROWS.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the text of the line `#:` below an allocator.
    fn remark(name: &str) -> Option<&'static str> {
        let rows = OWN.lines().zip(OWN.lines().skip(1));
        let mut found = rows.filter(|(row, _)| row.strip_prefix("allocator ") == Some(name));
        found.find_map(|(_, below)| below.strip_prefix("#: "))
    }

    #[test]
    fn a_session_of_samples_has_pythons_objects_in_the_main_heap_and_no_pools() {
        let sampled = Table::default().of_main_heap();
        assert!(sampled.allocators.iter().all(|allocator| allocator.heap.is_empty()));
        let has = |name: &str| sampled.allocators.iter().any(|allocator| allocator.name == name);
        assert!(has("Python's object allocator") && has("jemalloc"));
        assert!(!has("APR's pools") && !has("Zend's memory manager"));
    }

    #[test]
    fn allocators_of_runtimes_are_in_the_table() {
        for row in heapr_known::runtimes::RUNTIMES.iter().filter(|row| !row.allocator_text.is_empty()) {
            assert!(OWN_ROWS.iter().any(|known| known.name == row.allocator), "{}", row.allocator);
        }
    }

    /// Symbols by which an allocator is recognised.
    fn evidence(allocator: &Allocator) -> String {
        let list = |names: &[String], between: &str| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
        };
        let prefixed = Some(&allocator.any_prefix).filter(|names| !names.is_empty());
        let prefixed = prefixed.map(|names| format!("{} with any prefix, or none", list(names, " or ")));
        let needs =
            Some(&allocator.needs).filter(|names| !names.is_empty()).map(|names| list(names, " and "));
        // Forms of an operator.
        let forms = allocator.any_of.iter().map(|names| format!("a form of {}", list(&names[..1], "")));
        let (sanitizers, absent): (Vec<String>, Vec<String>) =
            allocator.absent.iter().cloned().partition(|name| name.ends_with("san_init"));
        let without = (!absent.is_empty()).then(|| format!("without {}", list(&absent, " and ")));
        let unsanitized = (!sanitizers.is_empty()).then(|| "without a sanitizer".to_owned());
        let has: Vec<String> = prefixed.into_iter().chain(needs).chain(forms).collect();
        [has.join(" and ")].into_iter().chain(without).chain(unsanitized).collect::<Vec<_>>().join(", ")
    }

    /// Rows of the documentation, one for each allocator, in the table's order.
    fn markdown() -> String {
        let mut text = "| allocator | evidence | blocks are in |\n|---|---|---|\n".to_owned();
        let rows = OWN_ROWS.iter().filter(|allocator| !allocator.is_named);
        let names = rows.clone().map(|allocator| allocator.name.as_str());
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        for name in names {
            let same = rows.clone().filter(|allocator| allocator.name == name);
            let shown = remark(name).map_or_else(|| name.to_owned(), |remark| format!("{name} ({remark})"));
            let evidence = same.clone().map(evidence).collect::<Vec<_>>().join("; or ");
            let heap = same.map(|allocator| allocator.heap.as_str()).next().unwrap_or_default();
            let heap = if heap.is_empty() { "the main heap".to_owned() } else { format!("heap `{heap}`") };
            text += &format!("| {shown} | {evidence} | {heap} |\n");
        }
        text + "| Go's own heap | the program's table of functions | heap `Go`, [sampled by its runtime](#gos-own-heap) |\n"
    }

    #[test]
    fn heaps_of_languages_are_in_the_table() {
        for heap in heapr_known::allocator_libraries::LANGUAGE_HEAPS {
            assert!(OWN_ROWS.iter().any(|allocator| allocator.heap == heap), "{heap}");
        }
    }

    #[test]
    fn the_documentation_has_the_allocators() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/allocators.md");
        heapr_testkit::check_part(&document, "allocators", &markdown());
    }

    #[test]
    fn the_table_that_comes_with_heapr_is_whole() {
        let allocators = grammar::parse(OWN).unwrap();
        assert!(allocators.len() > 5);
        for allocator in &allocators {
            assert_eq!(allocator.functions.is_empty(), allocator.is_named, "{}", allocator.name);
            for function in &allocator.functions {
                let is_known = |name: &String| allocator.functions.iter().any(|row| row.name == *name);
                assert!(function.instead.iter().all(is_known), "{}", function.name);
            }
        }
    }
}
