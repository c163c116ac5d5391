//! Sources of names for addresses.

use heapr_trace::{ModuleIndex, ProcessIndex};

/// One frame at an address, as its source names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceFrame<'a> {
    /// Demangled symbol.
    pub symbol: Option<&'a str>,
    /// Source file.
    pub file: Option<&'a str>,
    /// Source line, from 1.
    pub line: Option<u32>,
    /// True if the function is inlined into the frame that follows.
    pub is_inlined: bool,
}

/// Callback for each named address: index in the requested slice, and frames, innermost inlined
/// frame first.
pub type FrameSink<'a> = dyn FnMut(usize, &[SourceFrame<'_>]) + 'a;

/// Names addresses. Unknown addresses are left out.
pub trait SymbolSource {
    /// Names the code at `svmas` of a module. Each is the address of a call (return address - 1).
    fn resolve(&mut self, module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>);

    /// Names code outside all modules (JIT code) at `avmas` of a process.
    fn resolve_unmapped(&mut self, process: ProcessIndex, avmas: &[u64], sink: &mut FrameSink<'_>) {
        let _ = (process, avmas, sink);
    }
}

/// A source without names: all frames are `module+0xoffset`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSymbols;

impl SymbolSource for NoSymbols {
    fn resolve(&mut self, _module: ModuleIndex, _svmas: &[u64], _sink: &mut FrameSink<'_>) {}
}

/// Source of the names of packages.
pub trait PackageSource: std::fmt::Debug {
    /// Name and version of the package that a file belongs to; `None`: of no known one.
    fn package_of(&self, file: &str) -> Option<String>;
}

impl PackageSource for heapr_symbols::Packages {
    fn package_of(&self, file: &str) -> Option<String> {
        self.name(file)
    }
}
