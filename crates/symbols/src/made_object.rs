//! Objects that a program has made at run time and registered for debuggers (GDB's JIT interface):
//! the functions in them.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use crate::demangle::demangle;
use crate::made_code::MadeFunction;
use crate::mapped_file::map;

/// Where programs that make code keep the list of their objects.
const JIT_DESCRIPTOR: &str = "__jit_debug_descriptor";

/// The functions of an untrusted object in memory. Its sections say where they were put, or (of an
/// object that is linked) its symbols do.
#[must_use]
pub fn read_made_object(bytes: &[u8]) -> Vec<MadeFunction> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let is_linked = file.kind() != object::ObjectKind::Relocatable;
    let mut functions = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_function =
            symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label);
        let (Ok(name), true) = (symbol.name(), is_function) else { continue };
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section else { continue };
        let base = if is_linked { 0 } else { section.address() };
        let start_avma = base.wrapping_add(symbol.address());
        let section_end = section.address().saturating_add(section.size());
        let end = match symbol.size() {
            0 => section_end,
            size => start_avma.saturating_add(size),
        };
        if name.is_empty() || start_avma == 0 || section.address() == 0 {
            // It was never put anywhere.
            continue;
        }
        let name = demangle(name).to_string();
        functions.push(MadeFunction { start_avma, end_avma: end, name, ..MadeFunction::default() });
    }
    // A function of unknown size ends where the next one begins.
    functions.sort_by_key(|function| function.start_avma);
    for place in 1..functions.len() {
        let next = functions[place].start_avma;
        let function = &mut functions[place - 1];
        if function.start_avma < next {
            function.end_avma = function.end_avma.min(next);
        }
    }
    functions.dedup_by(|second, first| second.start_avma == first.start_avma && second.name == first.name);
    functions
}

/// Where a module's file has the list of its program's objects, if it has one.
#[must_use]
pub fn jit_descriptor_svma(path: &Path) -> Option<u64> {
    let bytes = map(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut symbols = file.dynamic_symbols().chain(file.symbols());
    let wanted = |symbol: &object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.name_bytes().is_ok_and(|name| name == JIT_DESCRIPTOR.as_bytes())
    };
    symbols.find(wanted).map(|symbol| symbol.address())
}
