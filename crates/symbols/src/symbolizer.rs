//! Naming of addresses.

use std::cell::OnceCell;
use std::collections::HashMap;

use addr2line::Loader;
use gimli::ReaderOffset as _;

use crate::allocation_types;
use crate::bundle::decode_bundle;
use crate::cache;
use crate::closing_brace::{self, BraceCall};
use crate::debug_file::{self, DebugFiles, Unresolved};
use crate::demangle::{demangle, is_mangled};
use crate::elf_symbols::ElfSymbols;
use crate::go::{GoNames, GoPlace};
use crate::module_key::ModuleKey;
use crate::options::SymbolOptions;
use crate::symbol_table::{Frame, SymbolTable};
use crate::whole_names::{self, Asked, without_clone};

/// Names addresses of modules.
#[derive(Debug)]
pub struct Symbolizer {
    options: SymbolOptions,
    embedded: HashMap<ModuleKey, SymbolTable>,
}

/// Sources of a module's names, opened when an address is missing from the cache.
struct Names<'a> {
    files: &'a DebugFiles,
    /// Addresses that will be requested, in order.
    svmas: &'a [u64],
    loader: Option<Loader>,
    symbols: OnceCell<Option<ElfSymbols>>,
    /// Exported symbols of the module itself.
    exported: OnceCell<Option<ElfSymbols>>,
    /// Go's function table in the module itself, which stripping leaves in place.
    go: OnceCell<Option<GoNames>>,
}

/// A frame whose name does not contain the function's scope.
struct Unscoped {
    asked: Asked,
    /// Index among the frames at the address.
    frame: usize,
}

impl Symbolizer {
    /// Creates a symbolizer.
    #[must_use]
    pub fn new(options: SymbolOptions) -> Self {
        Self { options, embedded: HashMap::new() }
    }

    /// Adds a bundle embedded in a trace, which precedes all other sources. `false`: the bundle is
    /// invalid.
    pub fn use_bundle(&mut self, bundle: &[u8]) -> bool {
        let Some(tables) = decode_bundle(bundle) else { return false };
        self.embedded.extend(tables);
        true
    }

    /// Frames at addresses of a module; each address is that of a call: return address - 1.
    /// Addresses without a name have no frames.
    ///
    /// # Errors
    /// Returns the reason why the module has no names at all.
    pub fn resolve(&self, key: &ModuleKey, svmas: &[u64]) -> Result<SymbolTable, Unresolved> {
        let Some(embedded) = self.embedded.get(key) else { return self.resolve_from_files(key, svmas) };
        if svmas.iter().all(|&svma| embedded.has_name(svma)) {
            return Ok(embedded.clone());
        }
        let mut table = embedded.clone();
        // Names that are missing in the embedded symbols may be in the files on this machine.
        // Embedded names are unchanged.
        if let Ok(found) = self.resolve_from_files(key, svmas) {
            table.improve(&found, svmas, false);
        }
        Ok(table)
    }

    /// Contents of all bundles.
    pub fn embedded(&self) -> impl Iterator<Item = (&ModuleKey, &SymbolTable)> {
        self.embedded.iter()
    }

    /// Embedded names of a module.
    #[must_use]
    pub fn embedded_of(&self, key: &ModuleKey) -> Option<&SymbolTable> {
        self.embedded.get(key)
    }

    /// Types allocated by the calls that return to these addresses, if the compiler stored them
    /// (clang from 21 on).
    #[must_use]
    pub fn allocation_types(&self, key: &ModuleKey, return_svmas: &[u64]) -> Vec<Option<String>> {
        match debug_file::find(key, &self.options) {
            Ok(files) if files.has_debug_info => allocation_types::find(&files.debug, return_svmas),
            _ => vec![None; return_svmas.len()],
        }
    }

    /// Frames at addresses of a module as in [`Self::resolve`], without embedded names.
    ///
    /// # Errors
    /// Returns the reason why the module has no names at all.
    pub fn resolve_from_files(&self, key: &ModuleKey, svmas: &[u64]) -> Result<SymbolTable, Unresolved> {
        let files = debug_file::find(key, &self.options)?;
        let identity = cache::identity(&files);
        // A file that is not at its path was supplied for this process only, so that it is not
        // cached.
        let cache_dir = self.options.cache_dir.as_deref().filter(|_| !self.options.files.contains_key(key));
        let cached = cache_dir.and_then(|directory| cache::load(directory, key, &identity));
        let mut table = cached.unwrap_or_default();
        let mut missing: Vec<u64> =
            svmas.iter().copied().filter(|&svma| table.frames(svma).is_none()).collect();
        if missing.is_empty() {
            return Ok(table);
        }
        // Sorted addresses of one compilation unit follow each other, so that each unit is read
        // once.
        missing.sort_unstable();
        missing.dedup();
        table.reopen();
        let names = Names::open(&files, &missing);
        let mut entries = Vec::with_capacity(missing.len());
        let mut unscoped = Vec::new();
        let mut at_braces = Vec::new();
        for &svma in &missing {
            let frames = names.frames(svma, &mut table, &mut unscoped);
            at_braces.extend(names.brace_call(svma, &frames));
            entries.push((svma, frames));
        }
        for call in closing_brace::plain_calls(&files, &at_braces) {
            let place = entries.binary_search_by_key(&call.svma, |&(svma, _)| svma);
            if let Some(frame) = place.ok().and_then(|place| entries[place].1.first_mut()) {
                frame.set_line(call.line);
            }
        }
        let asked: Vec<Asked> = unscoped.iter().map(|unscoped| unscoped.asked).collect();
        for (unscoped, name) in unscoped.iter().zip(whole_names::find(&files.debug, &asked)) {
            let place = entries.binary_search_by_key(&unscoped.asked.svma, |&(svma, _)| svma);
            let frame = place.ok().and_then(|place| entries[place].1.get_mut(unscoped.frame));
            if let (Some(frame), Some(name)) = (frame, name) {
                frame.set_symbol(table.intern(Some(&name)));
            }
        }
        table.extend(entries);
        if let Some(directory) = cache_dir {
            cache::store(directory, key, &identity, &table);
        }
        Ok(table)
    }
}

impl<'a> Names<'a> {
    fn open(files: &'a DebugFiles, svmas: &'a [u64]) -> Self {
        // The loader sorts all symbols before it looks for debug information.
        let loader = files
            .has_debug_info
            .then(|| Loader::new_with_sup(&files.debug, files.supplementary.as_ref()).ok());
        Self {
            files,
            svmas,
            loader: loader.flatten(),
            symbols: OnceCell::new(),
            exported: OnceCell::new(),
            go: OnceCell::new(),
        }
    }

    /// Demangled name of the function at an address, from the symbol tables.
    fn symbol(&self, svma: u64) -> Option<String> {
        self.raw_symbol(svma).map(demangle)
    }

    fn raw_symbol(&self, svma: u64) -> Option<&str> {
        self.symbols()?.find(svma)
    }

    fn symbols(&self) -> Option<&ElfSymbols> {
        let DebugFiles { module, debug, .. } = self.files;
        let symbols = self.symbols.get_or_init(|| {
            let own = module.as_deref().filter(|module| module != debug);
            ElfSymbols::read(debug, self.svmas)
                .filter(|symbols| !symbols.is_empty())
                .or_else(|| own.and_then(|own| ElfSymbols::read(own, self.svmas)))
        });
        symbols.as_ref()
    }

    /// Call at an address that the line table puts on a closing brace. Where functions are inlined
    /// the rows are of several, and tell nothing.
    fn brace_call(&self, svma: u64, frames: &[Frame]) -> Option<BraceCall> {
        let ([frame], Some(loader)) = (frames, &self.loader) else { return None };
        // Symbols, and all rows of a function, are read only where a brace may be.
        if frame.line() == 0 || !closing_brace::is_in_first_column(loader, svma) {
            return None;
        }
        closing_brace::brace_call(loader, svma, self.symbols()?.range(svma)?)
    }

    /// Whole name, from the symbol tables, of a function that the debug information calls `name`.
    fn mangled_symbol(&self, svma: u64, name: &str) -> Option<String> {
        let symbol = self.raw_symbol(svma).filter(|symbol| is_mangled(symbol))?;
        let whole = without_clone(demangle(symbol));
        // The linker may have merged functions with equal code.
        let base = name.split(['<', '(']).next().unwrap_or(name);
        whole.contains(base).then_some(whole)
    }

    /// Exported name of the function at an address.
    fn exported(&self, svma: u64) -> Option<String> {
        let exported = self.exported.get_or_init(|| {
            let module = self.files.module.as_deref();
            module.and_then(|module| ElfSymbols::read_exported(module, self.svmas))
        });
        exported.as_ref()?.find(svma).map(demangle)
    }

    fn go_place(&self, svma: u64) -> Option<GoPlace> {
        let go = self.go.get_or_init(|| self.files.module.as_deref().and_then(GoNames::open));
        go.as_ref()?.find(svma)
    }

    fn frames(&self, svma: u64, table: &mut SymbolTable, unscoped: &mut Vec<Unscoped>) -> Vec<Frame> {
        let mut frames = self.debug_frames(svma, table, unscoped).unwrap_or_default();
        match frames.last_mut() {
            None => {
                if let Some(symbol) = self.symbol(svma) {
                    frames.push(table.frame(Some(&symbol), None, None, false));
                } else if let Some(GoPlace { symbol, line }) = self.go_place(svma) {
                    let (file, line) = line.unzip();
                    frames.push(table.frame(Some(&symbol), file.as_deref(), line, false));
                }
            }
            // The debug information has the line but not the function.
            Some(outermost) if table.symbol(outermost).is_none() => {
                let number = table.intern(self.symbol(svma).as_deref());
                outermost.set_symbol(number);
            }
            // A C library's internal name for a function with a well-known exported name.
            Some(outermost) if table.symbol(outermost).is_some_and(|symbol| symbol.starts_with('_')) => {
                if let Some(plain) = self.exported(svma) {
                    let number = table.intern(Some(&plain));
                    outermost.set_symbol(number);
                }
            }
            Some(_) => {}
        }
        frames
    }

    fn debug_frames(
        &self,
        svma: u64,
        table: &mut SymbolTable,
        unscoped: &mut Vec<Unscoped>,
    ) -> Option<Vec<Frame>> {
        let mut found = self.loader.as_ref()?.find_frames(svma).ok()?;
        let mut frames = Vec::new();
        let known_count = unscoped.len();
        while let Ok(Some(frame)) = found.next() {
            let raw_name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = raw_name.as_ref().map(|name| demangle(name));
            // The function has no linkage name: the scope of its debugging entry gives the whole
            // name.
            if let (Some(raw_name), Some(entry)) = (&raw_name, frame.dw_die_offset)
                && frame
                    .function
                    .as_ref()
                    .is_some_and(|function| function.language.is_none_or(whole_names::is_cpp_language))
                && !is_mangled(raw_name)
            {
                let entry = entry.0.into_u64() as usize;
                unscoped.push(Unscoped { asked: Asked { svma, entry }, frame: frames.len() });
            }
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            let line = location.and_then(|location| location.line);
            if name.is_none() && file.is_none() {
                continue;
            }
            frames.push(table.frame(name.as_deref(), file, line, true));
        }
        let outermost_number = frames.len().saturating_sub(1);
        if let Some(outermost) = frames.last_mut() {
            outermost.set_not_inlined();
            let last =
                unscoped.last().filter(|last| unscoped.len() > known_count && last.frame == outermost_number);
            let name = table.symbol(outermost).filter(|_| last.is_some());
            // A symbol of the same name is a C function.
            if name.is_some() && name == self.raw_symbol(svma) {
                unscoped.pop();
            } else if let Some(whole) = name.and_then(|name| self.mangled_symbol(svma, name)) {
                unscoped.pop();
                outermost.set_symbol(table.intern(Some(&whole)));
            }
        }
        Some(frames)
    }
}
