//! Names of variables and functions: which one lies at an address of a file.

use std::path::Path;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::demangle::demangle;
use crate::mapped_file::map;

/// The variables of a file by address.
#[derive(Debug, Clone, Default)]
pub struct DataSymbols {
    /// Address as in the file, size, name as the compiler wrote it.
    symbols: Vec<(u64, u64, String)>,
    /// Behind all that is loaded of the file; 0: not known.
    end_svma: u64,
}

impl DataSymbols {
    /// Reads them; none where the file has none or is not there.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self::of_kinds(path, &[SymbolKind::Data, SymbolKind::Unknown])
    }

    /// The functions of a file instead.
    #[must_use]
    pub fn functions_of(path: &Path) -> Self {
        Self::of_kinds(path, &[SymbolKind::Text])
    }

    /// The thread-local variables of a file, by their places in its thread-local memory.
    #[must_use]
    pub fn thread_locals_of(path: &Path) -> Self {
        Self::of_kinds(path, &[SymbolKind::Tls])
    }

    pub(crate) fn of_kinds(path: &Path, kinds: &[SymbolKind]) -> Self {
        let Some(bytes) = map(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let is_data = |symbol: &object::Symbol<'_, '_>| {
            let is_defined = match symbol.kind() {
                SymbolKind::Tls => !symbol.is_undefined(),
                _ => symbol.is_definition(),
            };
            is_defined && kinds.contains(&symbol.kind())
        };
        let all = file.symbols().chain(file.dynamic_symbols());
        let mut symbols: Vec<(u64, u64, String)> = all
            .filter(is_data)
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .filter(|(_, size_bytes, name)| *size_bytes > 0 && !name.is_empty())
            .collect();
        symbols.sort();
        symbols.dedup_by_key(|symbol| symbol.0);
        let ends = file.segments().map(|segment| segment.address().saturating_add(segment.size()));
        Self { symbols, end_svma: ends.max().unwrap_or(0) }
    }

    /// Whether an address lies behind all that is loaded of the file.
    #[must_use]
    pub fn is_behind(&self, svma: u64) -> bool {
        self.end_svma != 0 && svma >= self.end_svma.next_multiple_of(4096)
    }

    /// The variable that an address lies in, and how far.
    #[must_use]
    pub fn find(&self, svma: u64) -> Option<(String, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.0 <= svma);
        let (start_svma, size_bytes, name) = self.symbols.get(behind.checked_sub(1)?)?;
        (svma - start_svma < *size_bytes).then(|| (demangle(name), svma - start_svma))
    }
}

/// The name of a type, as its description in a program has it (`N3foo3BarE`: `foo::Bar`).
#[must_use]
pub fn type_name(mangled: &str) -> String {
    let whole = demangle(&format!("_ZTS{mangled}"));
    whole.strip_prefix("typeinfo name for ").unwrap_or(mangled).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_in_the_source() {
        assert_eq!(type_name("3Foo"), "Foo");
        assert_eq!(type_name("N3foo3BarIiEE"), "foo::Bar<int>");
        assert_eq!(type_name("what"), "what");
    }
}
