//! Lines of calls that the line table puts on the closing brace of their function.
//!
//! Some compilers give the call that makes a temporary the place of its clean-up:
//! ```text
//! 9:  Session *session = new Session{std::string(4000, 'x')};   operator new
//! 12: }                                                         std::string::string
//! ```
//! Of C++ only destructors and `operator delete` are called at the brace. The call of any other
//! function there is told with the line before it in the code, which prepares its arguments. A
//! function of `__attribute__((cleanup))` looks the same, and is told with a line too early.

use std::ops::Range;

use addr2line::Loader;
use object::read::elf::FileHeader as _;
use object::{Endianness, Object as _, ObjectSegment as _};

use crate::arch;
use crate::debug_file::DebugFiles;
use crate::demangle::demangle;
use crate::elf_symbols::ElfSymbols;
use crate::mapped_file::map;

/// Largest number of rows of a function that are read: a false file's function may be all of it.
const ROWS_MAX: usize = 1 << 14;

/// Row of the line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row<'a> {
    svma: u64,
    file: Option<&'a str>,
    line: u32,
    column: u32,
}

/// A call at a closing brace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BraceCall {
    /// Address of the call's last byte.
    pub(crate) svma: u64,
    /// Line before it in the code.
    pub(crate) line: u32,
}

/// Tells whether the line table puts an address in the first column, as on a closing brace.
pub(crate) fn is_in_first_column(loader: &Loader, svma: u64) -> bool {
    matches!(loader.find_location(svma), Ok(Some(location)) if location.column == Some(1))
}

/// Finds whether the line table puts the call at `svma` on the closing brace of the function with
/// the range `function`.
pub(crate) fn brace_call(loader: &Loader, svma: u64, function: Range<u64>) -> Option<BraceCall> {
    let found = loader.find_location_range(function.start, function.end).ok()?;
    let rows: Vec<Row<'_>> = found
        .take(ROWS_MAX + 1)
        .map(|(svma, _, location)| Row {
            svma,
            file: location.file,
            line: location.line.unwrap_or(0),
            column: location.column.unwrap_or(0),
        })
        .collect();
    if rows.len() > ROWS_MAX {
        return None;
    }
    Some(BraceCall { svma, line: line_before(&rows, svma)? })
}

/// Line before a call that stands on the closing brace: the function's last line, less indented
/// than all lines inside.
fn line_before(rows: &[Row<'_>], svma: u64) -> Option<u32> {
    let at = rows.partition_point(|row| row.svma <= svma).checked_sub(1)?;
    let (first, call) = (rows.first()?, rows.get(at)?);
    let mut last_line = 0;
    for row in rows.iter().filter(|row| row.file == first.file) {
        last_line = last_line.max(row.line);
    }
    // A body on one line has its call behind the brace: only the first column is surely a brace.
    if call.file != first.file || call.column != 1 || call.line != last_line {
        return None;
    }
    let is_inside = |row: &&Row<'_>| row.file == first.file && row.line > first.line && row.line < last_line;
    let is_brace = rows.iter().filter(is_inside).all(|row| row.column > call.column);
    let before = rows[..at].iter().rev().find(|row| row.file != call.file || row.line != call.line)?;
    (is_brace && is_inside(&before)).then_some(before.line)
}

/// Calls of C++ functions that clean nothing up, as the code of the module tells. A call whose
/// target is unknown is left out.
pub(crate) fn plain_calls(files: &DebugFiles, calls: &[BraceCall]) -> Vec<BraceCall> {
    if calls.is_empty() {
        return Vec::new();
    }
    let targets = files.module.as_deref().and_then(|module| {
        let bytes = map(module)?;
        let file = object::read::elf::ElfFile64::<Endianness>::parse(&*bytes).ok()?;
        let target_of = arch::call_target(file.elf_header().e_machine(file.endian()).0)?;
        let target = |call: &BraceCall| {
            let start_svma = call.svma.checked_sub(arch::CALL_BYTES - 1)?;
            let code = file
                .segments()
                .find_map(|segment| segment.data_range(start_svma, arch::CALL_BYTES).ok().flatten())?;
            target_of(code, start_svma)
        };
        Some(calls.iter().map(target).collect::<Vec<Option<u64>>>())
    });
    let targets = targets.unwrap_or_default();
    let mut sorted: Vec<u64> = targets.iter().copied().flatten().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let Some(symbols) = ElfSymbols::read(&files.debug, &sorted) else { return Vec::new() };
    let is_plain = |target: Option<u64>| {
        let name = target.and_then(|svma| symbols.beginning_at(svma));
        name.is_some_and(|name| is_cpp(name) && !may_clean_up(name))
    };
    calls.iter().zip(targets).filter(|(_, target)| is_plain(*target)).map(|(call, _)| *call).collect()
}

/// Whether a symbol of C++ is a destructor or `operator delete`, or cannot be read.
fn may_clean_up(symbol: &str) -> bool {
    let name = demangle(symbol);
    name == symbol || name.contains("::~") || ["_Zdl", "_Zda"].iter().any(|start| symbol.starts_with(start))
}

/// Whether a symbol is of C++: older names of Rust have the same form, with a hash at the end.
fn is_cpp(symbol: &str) -> bool {
    let hash = symbol.rsplit_once("17h").and_then(|(_, hash)| hash.strip_suffix('E'));
    symbol.starts_with("_Z") && hash.is_none_or(|hash| hash.len() != 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Option<&str> = Some("/a.cc");

    fn rows(rows: &[(u64, u32, u32)]) -> Vec<Row<'static>> {
        rows.iter().map(|&(svma, line, column)| Row { svma, file: A, line, column }).collect()
    }

    #[test]
    fn a_call_on_the_brace_is_told_with_the_line_before_it() {
        let function = rows(&[(0, 8, 39), (4, 9, 58), (10, 12, 1), (20, 9, 23), (30, 10, 5), (40, 12, 1)]);
        assert_eq!(line_before(&function, 14), Some(9));
        assert_eq!(line_before(&function, 44), Some(10));
        for svma in [0, 5, 24, 34] {
            assert_eq!(line_before(&function, svma), None, "{svma}");
        }
    }

    #[test]
    fn the_last_statement_is_no_brace() {
        assert_eq!(line_before(&rows(&[(0, 8, 39), (4, 9, 5), (10, 10, 5)]), 14), None);
        assert_eq!(line_before(&rows(&[(0, 8, 39), (4, 8, 60)]), 14), None);
        assert_eq!(line_before(&rows(&[(0, 8, 39), (10, 12, 1)]), 14), None);
        assert_eq!(line_before(&rows(&[(0, 8, 39), (4, 9, 0), (10, 12, 0)]), 14), None);
        assert_eq!(line_before(&[], 14), None);
    }

    #[test]
    fn code_of_another_file_is_no_line_before() {
        // A line of the brace's number, too.
        for line in [11, 12] {
            let mut function = rows(&[(0, 8, 39), (4, 9, 58), (6, line, 7), (10, 12, 1), (20, 9, 23)]);
            function[2].file = Some("/b.h");
            assert_eq!(line_before(&function, 14), None, "{line}");
        }
    }

    #[test]
    fn functions_that_clean_up_belong_to_the_brace() {
        for symbol in ["_ZN5GuardD1Ev", "_ZdlPvm", "_ZdaPv", "_Z?"] {
            assert!(may_clean_up(symbol), "{symbol}");
        }
        assert!(!may_clean_up("_ZN4PartC1Ev"));
        assert!(!may_clean_up("_Znwm"));
    }
}
