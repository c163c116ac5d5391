//! Names of the variables and functions at addresses of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapr_known::machine::SMALLEST_PAGE_BYTES;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::demangle::demangle;
use crate::mapped_file::map;

/// Variables of a file, ordered by address.
#[derive(Debug, Clone, Default)]
pub struct DataSymbols {
    /// Address as in the file, size in bytes, mangled name.
    symbols: Vec<(u64, u64, String)>,
    /// Exclusive end of the loaded file; 0 if unknown.
    end_svma: u64,
    /// Loaded segments.
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start_svma: u64,
    /// Exclusive end of the part that is in the file.
    file_end_svma: u64,
    end_svma: u64,
    is_writable: bool,
}

impl DataSymbols {
    /// Reads the variables of a file; empty if the file does not exist.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self::of_kinds(path, &[SymbolKind::Data, SymbolKind::Unknown])
    }

    /// Reads the functions of a file.
    #[must_use]
    pub fn functions_of(path: &Path) -> Self {
        Self::of_kinds(path, &[SymbolKind::Text])
    }

    /// Reads the thread-local variables of a file, by their offsets in its thread-local memory.
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
        let segments = file.segments().map(|segment| {
            let start_svma = segment.address();
            let end_of = |bytes: u64| start_svma.saturating_add(bytes);
            Segment {
                start_svma,
                file_end_svma: end_of(segment.file_range().1),
                end_svma: end_of(segment.size()),
                is_writable: segment.permissions().writable(),
            }
        });
        let segments: Vec<Segment> = segments.collect();
        let end_svma = segments.iter().map(|segment| segment.end_svma).max().unwrap_or(0);
        Self { symbols, end_svma, segments }
    }

    /// Distance between a file's addresses in a process and those in the file. `parts` are start
    /// and end of its mappings: each lies in a segment, and a data mapping begins or ends with one.
    /// `None` if the distance is uncertain.
    #[must_use]
    pub fn bias(&self, parts: &[(u64, u64)]) -> Option<u64> {
        let down = |svma: u64| svma & !(SMALLEST_PAGE_BYTES - 1);
        let up = |svma: u64| down(svma.saturating_add(SMALLEST_PAGE_BYTES - 1));
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for &(start_avma, end_avma) in parts {
            let data = self.segments.iter().filter(|segment| segment.is_writable);
            let ways = data.flat_map(|segment| {
                let (file_end, end) = (up(segment.file_end_svma), up(segment.end_svma));
                let begins = [down(segment.start_svma), file_end].map(|svma| start_avma.wrapping_sub(svma));
                let ends = [file_end, end].map(|svma| end_avma.wrapping_sub(svma));
                begins.into_iter().chain(ends)
            });
            for bias in ways.collect::<BTreeSet<u64>>() {
                *votes.entry(bias).or_default() += 1;
            }
        }
        let is_inside = |bias: u64, start_avma: u64| {
            let svma = start_avma.wrapping_sub(bias);
            // Only the start is compared: other memory may follow data in one mapping.
            let mut all = self.segments.iter();
            all.any(|segment| (down(segment.start_svma)..up(segment.end_svma)).contains(&svma))
        };
        votes.retain(|&bias, _| parts.iter().all(|&(start_avma, _)| is_inside(bias, start_avma)));
        let most = *votes.values().max()?;
        let mut best = votes.iter().filter(|&(_, &count)| count == most);
        let (&bias, _) = best.next()?;
        best.next().is_none().then_some(bias)
    }

    /// True if an address lies behind all loaded parts of the file.
    #[must_use]
    pub fn is_behind(&self, svma: u64) -> bool {
        self.end_svma != 0 && svma >= self.end_svma.next_multiple_of(SMALLEST_PAGE_BYTES)
    }

    /// Variable at an address, and the offset in it.
    #[must_use]
    pub fn find(&self, svma: u64) -> Option<(String, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.0 <= svma);
        let (start_svma, size_bytes, name) = self.symbols.get(behind.checked_sub(1)?)?;
        (svma - start_svma < *size_bytes).then(|| (demangle(name), svma - start_svma))
    }
}

/// Demangles a type's name as in its type information (`N3foo3BarE`: `foo::Bar`).
#[must_use]
pub fn type_name(mangled: &str) -> String {
    let whole = demangle(&format!("_ZTS{mangled}"));
    whole.strip_prefix("typeinfo name for ").unwrap_or(mangled).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_file_lies_is_told_by_its_parts() {
        let of = [(0, 0x5e0, 0x5e0, false), (0x1000, 0x8010, 0x8010, false), (0x9db8, 0xa040, 0xa5c0, true)];
        let segments = of.map(|(start_svma, file_end_svma, end_svma, is_writable)| Segment {
            start_svma,
            file_end_svma,
            end_svma,
            is_writable,
        });
        let symbols = DataSymbols { segments: segments.to_vec(), ..DataSymbols::default() };
        let bias = 0x7f00_0000_0000;
        // Relocated constants, data, and the zeroed memory that follows it together with other
        // memory.
        let parts = [(0x9000, 0xa000), (0xa000, 0xb000)].map(|(start, end)| (bias + start, bias + end));
        assert_eq!(symbols.bias(&parts), Some(bias));
        // A single page can be the first or the last of a segment.
        let page = (bias + 0x30_0000, bias + 0x30_1000);
        assert_eq!(symbols.bias(&[page]), None);
        assert_eq!(symbols.bias(&[]), None);
        let far = (parts[0].0 + 0x10_0000, parts[0].1 + 0x10_0000);
        assert_eq!(symbols.bias(&[parts[0], parts[1], far]), None);
        assert_eq!(DataSymbols::default().bias(&parts), None);
        let all = [(0, 0x1000), (0x1000, 0x9000), (0x9000, 0xa000), (0xa000, 0x2_0000)];
        assert_eq!(symbols.bias(&all), Some(0));
    }

    #[test]
    fn types_are_written_as_in_the_source() {
        assert_eq!(type_name("3Foo"), "Foo");
        assert_eq!(type_name("N3foo3BarIiEE"), "foo::Bar<int>");
        assert_eq!(type_name("what"), "what");
    }
}
