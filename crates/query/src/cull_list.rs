//! Lists of the innermost frames that are removed before stacks are aggregated.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::allocator_frames::allocator_frames;
use crate::error::{Error, Result};
use crate::frame_pattern::{FramePattern, module_names};
use crate::symbol_forms::for_each_form;

/// A set of frame patterns, indexed for matching many frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CullList {
    /// Patterns with only a symbol, found by hash.
    symbols: HashSet<Box<str>>,
    /// Patterns with only a module's name, found by hash.
    module_names: HashSet<Box<str>>,
    /// Other patterns that are only a module, by what it begins with.
    modules: ByStart,
    /// All others, by what the symbol begins with: tried one by one.
    others: ByStart,
}

/// Patterns by the first byte of the names that they can match: hundreds of them are asked about
/// each frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ByStart {
    by_byte: BTreeMap<u8, Vec<FramePattern>>,
    /// Patterns that begin with a star.
    of_any: Vec<FramePattern>,
}

impl ByStart {
    fn add(&mut self, start: Option<u8>, pattern: FramePattern) {
        match start {
            Some(byte) => self.by_byte.entry(byte).or_default().push(pattern),
            None => self.of_any.push(pattern),
        }
    }

    fn is_empty(&self) -> bool {
        self.by_byte.is_empty() && self.of_any.is_empty()
    }

    /// The patterns that can match a name.
    fn for_name(&self, name_lower: &str) -> impl Iterator<Item = &FramePattern> {
        let begun = name_lower.as_bytes().first().and_then(|byte| self.by_byte.get(byte));
        begun.into_iter().flatten().chain(&self.of_any)
    }
}

impl CullList {
    /// A list that culls no frame.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The entry points and wrappers of allocators: see `docs/report.md`.
    #[must_use]
    pub fn built_in() -> Self {
        let mut list = Self::empty();
        for text in allocator_frames() {
            // A test parses each pattern.
            if let Ok(pattern) = FramePattern::parse(text) {
                list.add(pattern);
            }
        }
        list
    }

    /// Adds a pattern.
    pub fn add(&mut self, pattern: FramePattern) {
        if let Some(symbol) = pattern.as_plain_symbol() {
            self.symbols.insert(symbol.into());
        } else if let Some(module) = pattern.as_plain_module() {
            self.module_names.insert(module.into());
        } else if pattern.needs_symbol() {
            self.others.add(pattern.symbol_start(), pattern);
        } else {
            self.modules.add(pattern.module_start(), pattern);
        }
    }

    /// Adds the patterns of a list file: one per line; blank lines and lines that begin with `#`
    /// are skipped. `name` is the list's name, for errors.
    ///
    /// # Errors
    /// The first line that is no pattern, named in the error.
    pub fn add_lines(&mut self, name: &str, text: &str) -> Result<()> {
        // Some editors begin a file with it.
        const BYTE_ORDER_MARK: char = '\u{feff}';
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pattern = FramePattern::parse(line).map_err(|source| Error::CullList {
                list: name.to_owned(),
                line: index + 1,
                source: Box::new(source),
            })?;
            self.add(pattern);
        }
        Ok(())
    }

    /// Whether no frame can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.needs_symbols() && self.module_names.is_empty() && self.modules.is_empty()
    }

    /// Whether matching needs symbols.
    #[must_use]
    pub(crate) fn needs_symbols(&self) -> bool {
        !self.symbols.is_empty() || !self.others.is_empty()
    }

    /// Whether a frame matches one of the patterns: see [`FramePattern::matches`].
    #[must_use]
    pub fn matches(&self, module_path: Option<&str>, symbol: Option<&str>) -> bool {
        let module_lower = module_path.map(str::to_ascii_lowercase);
        let module_lower = module_lower.as_deref();
        if module_lower.is_some_and(|path| self.matches_module(path)) {
            return true;
        }
        let Some(symbol) = symbol else { return false };
        // The forms are made once for all patterns: making them takes longer than comparing.
        for_each_form(&symbol.to_ascii_lowercase(), |form| {
            self.symbols.contains(form)
                || self.others.for_name(form).any(|other| other.matches_form(module_lower, form))
        })
    }

    /// Whether a pattern without a symbol matches the module.
    fn matches_module(&self, path_lower: &str) -> bool {
        if self.module_names.is_empty() && self.modules.is_empty() {
            return false;
        }
        let is_named = |name| {
            self.module_names.contains(name)
                || self.modules.for_name(name).any(|pattern| pattern.is_module_name(name))
        };
        module_names(path_lower).any(is_named)
            || self.modules.for_name(path_lower).any(|pattern| pattern.is_module_path(path_lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_pattern_can_be_read() {
        for text in allocator_frames() {
            FramePattern::parse(text).unwrap();
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let mut list = CullList::empty();
        list.add_lines("list", "\u{feff}libc.so.6!malloc\n").unwrap();
        let mut plain = CullList::empty();
        plain.add_lines("list", "libc.so.6!malloc\n").unwrap();
        assert_eq!(format!("{list:?}"), format!("{plain:?}"));
    }

    #[test]
    fn the_built_in_list_holds_the_allocators_and_not_their_users() {
        let list = CullList::built_in();
        for culled in [
            "malloc",
            "__libc_malloc",
            "calloc",
            "operator new(unsigned long)",
            "operator new[](unsigned long, std::nothrow_t const&)",
            "std::__new_allocator<int>::allocate(unsigned long, void const*)",
            "std::allocator_traits<std::allocator<char> >::allocate(std::allocator<char>&, unsigned long)",
            "std::allocator<char>::allocate(unsigned long)",
            "alloc::alloc::alloc",
            "alloc::alloc::exchange_malloc",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "alloc::raw_vec::RawVecInner<A>::reserve::do_reserve_and_handle",
            "__rustc::__rust_alloc",
            "__rust_realloc",
            "g_malloc0",
            "xmalloc",
            "strdup",
            "je_malloc",
            "mi_malloc_aligned",
            "PyMem_RawMalloc",
            "node::Malloc<char>(unsigned long)",
            "heapr_heap_on_alloc",
            "heapr_heap_on_resize.constprop.0",
            "heapr_heap_new(char const*)",
        ] {
            assert!(list.matches(Some("/usr/bin/a"), Some(culled)), "{culled}");
        }
        for kept in
            ["main", "std::vector<int>::push_back(int&&)", "PyList_New", "mallocator", "my::malloc_user(int)"]
        {
            assert!(!list.matches(Some("/usr/bin/a"), Some(kept)), "{kept}");
        }
    }

    #[test]
    fn a_list_file_has_comments_and_blank_lines_and_its_errors_name_the_line() {
        let mut list = CullList::empty();
        list.add_lines("mine.txt", "# comment\n\n  libfoo.so!\nbar*\n").unwrap();
        assert!(list.matches(Some("/x/libfoo.so.1"), None));
        assert!(list.matches(None, Some("barn(int)")));
        assert!(!list.matches(Some("/x/libbar.so"), Some("foo")));
        let error = list.add_lines("mine.txt", "ok\n\n!\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "mine.txt, line 3: frame pattern \"!\" names neither a module nor a symbol"
        );
    }
}
