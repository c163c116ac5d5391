//! Search for allocators in a module, by the names of its functions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

use heapr_symbols::{SymbolOptions, Told, visit_functions};
use heapr_wire::{InnerAction, Signature};

use crate::convention::{Code, Elsewhere};
use crate::grammar::called;
use crate::name_filter::{NameFilter, text_hash};
use crate::row::Allocator;
use crate::table::{OWN, SAMPLED_HEAPS, Table};
use crate::texts;

/// Properties of a module that matter for the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleKind {
    /// Whether the module is the program itself.
    pub is_main: bool,
    /// Whether the loader binds other modules' malloc to this module.
    pub exports_malloc: bool,
}

/// A function that can be hooked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFunction {
    /// Symbol of the function.
    pub name: String,
    /// Address as in the file.
    pub svma: u64,
    /// Size in bytes; 0 if unknown.
    pub size_bytes: u64,
    /// Effect and arguments of the function.
    pub signature: Signature,
    /// Address of the function that the agent calls in its place.
    pub instead_svma: Option<u64>,
    /// Whether the function may throw without a substitute that returns null.
    pub may_throw: bool,
    /// Whether all callers are known to follow the calling convention's rules for registers.
    pub keeps_convention: bool,
}

/// An allocator in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAllocator {
    /// Name of the allocator.
    pub name: String,
    /// Heap that its blocks belong to; empty for the program's main heap.
    pub heap: String,
    /// Functions of the allocator.
    pub functions: Vec<FoundFunction>,
    /// Whether the functions must be recorded all together or not at all.
    pub is_whole: bool,
}

/// Result of a search in a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsideOf {
    /// Allocators in the order of the table.
    pub allocators: Vec<FoundAllocator>,
    /// Names of allocators that exist and cannot be recorded; in a stripped file they are
    /// recognised by their texts.
    pub named_allocators: Vec<String>,
    /// Whether only exported functions have names, so that more allocators may exist.
    pub is_stripped: bool,
    /// Build-id that identifies the debug file of a stripped module.
    pub build_id: Vec<u8>,
}

/// Symbols of a module that the table may refer to: address and size in bytes.
type Symbols = HashMap<String, (u64, u64)>;

impl InsideOf {
    /// Searches a module's file. `path` is the process's name for it. `None`: it is not an ELF
    /// file.
    #[must_use]
    pub fn read(
        sought: &Sought,
        file: &Path,
        path: &Path,
        options: &SymbolOptions,
        kind: ModuleKind,
    ) -> Option<Self> {
        // The loader binds other modules to this library's functions, so that they are hooked
        // without a search.
        if kind.exports_malloc && !kind.is_main {
            return Some(Self::default());
        }
        let (mut symbols, mut places) = (Symbols::new(), Vec::new());
        let told = visit_functions(file, path, options, &mut |function| {
            places.push((function.svma, function.size_bytes));
            let name = plain_name(function.name);
            if sought.may_mean(name) {
                symbols.entry(name.to_owned()).or_insert((function.svma, function.size_bytes));
            }
        })?;
        let mut inside = match told {
            Told::All => Self::default(),
            Told::Exported { build_id } => Self {
                named_allocators: texts::named_in(file, path),
                is_stripped: true,
                build_id,
                ..Self::default()
            },
        };
        // All rows of the built-in table need a symbol.
        let is_without = symbols.is_empty() && sought.has_only_own_rows();
        let allocators = if is_without { &[][..] } else { &sought.table().allocators };
        let mut taken = HashSet::new();
        for allocator in allocators {
            let is_beside = allocator.is_last && !inside.allocators.is_empty();
            if is_beside || allocator.is_alone && is_of_language(path) {
                continue;
            }
            for prefix in prefixes(allocator, &symbols) {
                if allocator.is_named && !inside.named_allocators.contains(&allocator.name) {
                    inside.named_allocators.push(allocator.name.clone());
                }
                let mut functions = functions(allocator, &prefix, &symbols, &mut taken);
                if allocator.is_alone {
                    keep_if_alone(file, &places, &mut functions);
                }
                if !functions.is_empty() {
                    inside.named_allocators.retain(|name| *name != allocator.name);
                    let (name, heap) = (allocator.name.clone(), allocator.heap.clone());
                    let is_whole = allocator.is_alone;
                    inside.allocators.push(FoundAllocator { name, heap, functions, is_whole });
                }
            }
        }
        inside.look_at_callers(file, places);
        Some(inside)
    }

    /// Sets the facts that depend on the code. `places`: start and size in bytes of all functions
    /// of the file.
    fn look_at_callers(&mut self, file: &Path, places: Vec<(u64, u64)>) {
        if self.allocators.is_empty() {
            return;
        }
        let Some(code) = Code::open(file, places) else { return };
        for function in self.allocators.iter_mut().flat_map(|allocator| &mut allocator.functions) {
            function.keeps_convention = code.is_convention_kept(function.svma);
            function.may_throw = function.may_throw && code.calls_elsewhere(function.svma).may_throw();
        }
    }
}

/// True for a C++ runtime library, whose operators call malloc.
fn is_of_language(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["libstdc++.", "libc++.", "libc++abi."].iter().any(|start| name.starts_with(start))
}

/// Drops the functions of a family that passes on blocks of another file's allocator, where they
/// are recorded. A family that maps memory itself stays: it uses the other allocator only for a
/// part of its blocks.
fn keep_if_alone(file: &Path, places: &[(u64, u64)], functions: &mut Vec<FoundFunction>) {
    let is_alone = Code::open(file, places.to_vec()).is_some_and(|code| {
        let calls: Vec<_> = functions.iter().map(|function| code.calls_elsewhere(function.svma)).collect();
        calls.iter().any(Elsewhere::is_memory_mapped) || !calls.iter().any(Elsewhere::is_allocator_called)
    });
    if !is_alone {
        functions.clear();
    }
}

/// Prefixes with which an allocator's functions exist; for an allocator without prefixes the empty
/// one.
fn prefixes(allocator: &Allocator, symbols: &Symbols) -> Vec<String> {
    if allocator.any_prefix.is_empty() {
        let has = |name: &String| symbols.contains_key(name);
        let is_there = allocator.needs.iter().all(has)
            && allocator.any_of.iter().all(|names| names.iter().any(has))
            && !allocator.absent.iter().any(has);
        return if is_there { vec![String::new()] } else { Vec::new() };
    }
    let mut prefixes: Vec<String> = symbols
        .keys()
        .flat_map(|symbol| allocator.any_prefix.iter().filter_map(|end| symbol.strip_suffix(end.as_str())))
        .map(str::to_owned)
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let has = |prefix: &str, name: &str| symbols.contains_key(&format!("{prefix}{name}"));
    let is_whole = |prefix: &String| {
        allocator.needs.iter().all(|name| has(prefix, name))
            // A single match may be the end of an unrelated function's name.
            && allocator.functions.iter().filter(|row| has(prefix, &row.name)).count() >= 2
    };
    prefixes.retain(is_whole);
    prefixes
}

fn functions(
    allocator: &Allocator,
    prefix: &str,
    symbols: &Symbols,
    taken: &mut HashSet<u64>,
) -> Vec<FoundFunction> {
    let mut found = Vec::new();
    for row in &allocator.functions {
        let name = format!("{prefix}{}", row.name);
        let Some(&(svma, size_bytes)) = symbols.get(&name) else { continue };
        let instead = row.instead.as_ref().map(|instead| symbols.get(&format!("{prefix}{instead}")));
        let instead_svma = instead.flatten().map(|&(svma, _)| svma);
        let may_throw = instead == Some(None);
        if may_throw && !allocator.is_alone {
            continue;
        }
        if taken.insert(svma) {
            let mut signature = row.signature;
            if may_throw {
                signature.action = InnerAction::Allocate;
                signature.block = None;
            }
            let shown = prefix.is_empty().then(|| called(&name)).flatten();
            signature.called = shown.unwrap_or(signature.called);
            let keeps_convention = false;
            found.push(FoundFunction {
                name,
                svma,
                size_bytes,
                signature,
                instead_svma,
                may_throw,
                keeps_convention,
            });
        }
    }
    found
}

/// Strips the mangling of Rust's allocator functions, which depends on the compiler (as of 1.87).
fn plain_name(symbol: &str) -> &str {
    const RUST: &str = "___rustc";
    match symbol.rfind("___r") {
        Some(at) if symbol.starts_with("_R") && symbol.contains(RUST) => &symbol[at + 1..],
        _ => symbol,
    }
}

/// Allocators that modules are searched for: the table, and the symbols that it names. Both are
/// computed once for all files, if a file needs them.
#[derive(Debug, Default)]
pub struct Sought {
    /// Texts of a user, whose rows precede the built-in ones.
    texts: Vec<String>,
    /// True if the table is that of a session of samples, see [`Table::of_main_heap`].
    is_of_main_heap: bool,
    table: OnceLock<Table>,
    wanted: OnceLock<Wanted>,
}

impl Sought {
    /// The built-in allocators, and before them those of a user's texts. Texts with an invalid line
    /// are left out: [`Table::check`] names the line.
    #[must_use]
    pub fn new(texts: &[String]) -> Self {
        let texts = if Table::check(texts).is_ok() { texts.to_vec() } else { Vec::new() };
        Self { texts, ..Self::default() }
    }

    /// Allocators for a session of samples, see [`Table::of_main_heap`].
    #[must_use]
    pub fn of_main_heap(self) -> Self {
        Self { texts: self.texts, is_of_main_heap: true, ..Self::default() }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let table = Table::with(&self.texts).unwrap_or_default();
            if self.is_of_main_heap { table.of_main_heap() } else { table }
        })
    }

    fn has_only_own_rows(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether the table may refer to a symbol.
    fn may_mean(&self, name: &str) -> bool {
        static OF_OWN_ROWS: NameFilter = NameFilter::of(OWN.as_bytes());
        (!self.has_only_own_rows() || OF_OWN_ROWS.may_end(name))
            && self.wanted.get_or_init(|| Wanted::of(self.table())).may_mean(name)
    }
}

/// Equal for equal tables, in builds that have one wire format.
impl Hash for Sought {
    fn hash<H: Hasher>(&self, state: &mut H) {
        const OF_OWN_ROWS: u64 = text_hash(OWN.as_bytes());
        let sampled = self.is_of_main_heap.then_some(SAMPLED_HEAPS);
        (heapr_wire::BUILD_ID, OF_OWN_ROWS, &self.texts, sampled).hash(state);
    }
}

/// Symbols that are looked for, of some 100,000.
#[derive(Debug)]
struct Wanted {
    names: HashSet<String>,
    /// Ends of names, by their last byte.
    ends: BTreeMap<u8, Vec<String>>,
}

impl Wanted {
    fn of(table: &Table) -> Self {
        let (mut names, mut all_ends) = (HashSet::new(), BTreeSet::new());
        for allocator in &table.allocators {
            let of_family = allocator.any_of.iter().flatten();
            names.extend(allocator.needs.iter().chain(&allocator.absent).chain(of_family).cloned());
            let of_functions = allocator.functions.iter().map(|row| row.name.clone());
            if allocator.any_prefix.is_empty() {
                names.extend(of_functions);
            } else {
                all_ends.extend(of_functions);
                all_ends.extend(allocator.any_prefix.iter().cloned());
            }
        }
        let mut ends: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for end in all_ends {
            if let Some(&last) = end.as_bytes().last() {
                ends.entry(last).or_default().push(end);
            }
        }
        Self { names, ends }
    }

    fn may_mean(&self, name: &str) -> bool {
        /// Largest length in bytes of an allocator's symbol with its prefix.
        const BYTES_MAX: usize = 64;
        let ends_so = |last: &u8| {
            self.ends.get(last).is_some_and(|ends| ends.iter().any(|end| name.ends_with(end.as_str())))
        };
        name.len() <= BYTES_MAX && name.as_bytes().last().is_some_and(ends_so) || self.names.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<(String, Vec<String>)> {
        let symbols: Symbols = names
            .iter()
            .enumerate()
            .map(|(place, name)| (plain_name(name).to_owned(), (place as u64 * 16 + 16, 16)))
            .collect();
        let mut all = Vec::new();
        for allocator in &Table::default().allocators {
            for prefix in prefixes(allocator, &symbols) {
                let functions = functions(allocator, &prefix, &symbols, &mut HashSet::new());
                let names = functions.into_iter().map(|function| function.name).collect();
                all.push((allocator.name.clone(), names));
            }
        }
        all
    }

    #[test]
    fn jemalloc_is_known_under_any_prefix() {
        for prefix in ["_rjem_", "je_", "", "my_own_"] {
            let names: Vec<String> =
                ["malloc", "sdallocx", "rallocx"].iter().map(|name| format!("{prefix}{name}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let jemalloc: Vec<_> = found(&names).into_iter().filter(|(name, _)| name == "jemalloc").collect();
            let [(_, functions)] = jemalloc.as_slice() else { panic!("{prefix}: {jemalloc:?}") };
            assert_eq!(functions.len(), 3, "{prefix}");
        }
        assert!(found(&["my_sdallocx"]).is_empty());
    }

    #[test]
    fn the_filter_passes_all_names_of_the_table_and_each_row_needs_one() {
        let table = Table::default();
        let filter = NameFilter::of(OWN.as_bytes());
        let wanted = Wanted::of(&table);
        for name in wanted.names.iter().chain(wanted.ends.values().flatten()) {
            assert!(filter.may_end(name), "{name}");
        }
        for allocator in &table.allocators {
            let is_found = !prefixes(allocator, &Symbols::new()).is_empty();
            assert!(!is_found || !allocator.is_named, "{}", allocator.name);
        }
    }

    #[test]
    fn what_may_be_meant_is_kept_and_all_else_is_not() {
        let wanted = Wanted::of(&Table::default());
        for name in ["my_own_sdallocx", "je_malloc", "__rust_dealloc"] {
            assert!(wanted.may_mean(name), "{name}");
        }
        for name in ["", "library_function17", "main"] {
            assert!(!wanted.may_mean(name), "{name}");
        }
    }

    #[test]
    fn rusts_functions_are_known_by_either_name() {
        let old = ["__rust_alloc", "__rust_dealloc", "__rust_alloc_zeroed"];
        let new = [
            "_RNvCs5fKp_7___rustc12___rust_alloc",
            "_RNvCs5fKp_7___rustc14___rust_dealloc",
            "_RNvCs5fKp_7___rustc19___rust_alloc_zeroed",
        ];
        for names in [old, new] {
            assert_eq!(found(&names).first().map(|(_, functions)| functions.len()), Some(3), "{names:?}");
        }
        // The standard library's own functions, which call malloc.
        assert!(found(&["__rdl_alloc", "__rust_alloc", "__rust_dealloc"]).is_empty());
    }
}
