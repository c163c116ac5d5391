//! Invented addresses for named frames, and the names for the trace.
//!
//! A named frame gets an address high above all code, in an invented mapping of its module. The
//! trace contains the names, like a trace from another machine. A frame without a name keeps its
//! address, which is looked up in its module's file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use heapr_symbols::{ModuleKey, NamedFrame, SymbolTable};
use heapr_trace::{Mapping, Module, ModuleIndex, ProcessIndex, TraceWriter};

use crate::error::Result;

/// First invented address, below those that stand for language frames.
const MADE_AVMA: u64 = 1 << 51;
/// Binary logarithm of the number of addresses of one module.
const MODULE_SHIFT: u32 = 27;
/// Largest number of modules with addresses; later ones share the last range.
const MODULES_MAX: u64 = 1 << 22;
/// Exclusive end of code addresses.
const CODE_END_AVMA: u64 = 1 << 48;

/// Writer of the trace.
pub(crate) type Writer = TraceWriter<BufWriter<File>>;

/// A frame as its tool names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Name of the function; may be empty.
    pub(crate) name: String,
    /// Source file; may be empty.
    pub(crate) file: String,
    /// Line in the file; 0 if unknown.
    pub(crate) line: u32,
}

/// Range in which code of a file was mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    pub(crate) start_avma: u64,
    pub(crate) end_avma: u64,
    pub(crate) bias_avma: u64,
}

#[derive(Debug)]
struct ModuleNames {
    start_avma: u64,
    frames: Vec<(u64, Vec<Frame>)>,
    numbers: HashMap<Vec<Frame>, u64>,
}

/// All invented addresses and mapped ranges.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    modules: HashMap<Module, ModuleNames>,
    ranges: HashMap<(ModuleIndex, Range), ()>,
}

impl Locations {
    /// Returns the address of a call in named frames, the innermost inlined one first.
    pub(crate) fn named(
        &mut self,
        writer: &mut Writer,
        process: ProcessIndex,
        module: Module,
        frames: Vec<Frame>,
    ) -> Result<u64> {
        let next = (self.modules.len() as u64).min(MODULES_MAX);
        if !self.modules.contains_key(&module) {
            let start_avma = MADE_AVMA + (next << MODULE_SHIFT);
            let mapping = Mapping {
                process,
                module: writer.add_module(module.clone())?,
                start_avma,
                end_avma: start_avma + (1 << MODULE_SHIFT),
                bias_avma: 0,
                loaded_ns: 0,
                unloaded_ns: u64::MAX,
            };
            writer.add_mapping(mapping)?;
            let names = ModuleNames { start_avma, frames: Vec::new(), numbers: HashMap::new() };
            self.modules.insert(module.clone(), names);
        }
        let Some(names) = self.modules.get_mut(&module) else { return Ok(0) };
        if let Some(&known) = names.numbers.get(&frames) {
            return Ok(known);
        }
        // The first byte of a module is not code.
        let avma = names.start_avma + 1 + (names.frames.len() as u64).min((1 << MODULE_SHIFT) - 2);
        names.frames.push((avma, frames.clone()));
        names.numbers.insert(frames, avma);
        Ok(avma)
    }

    /// Records the range in which code of a module was mapped, for addresses without names. `false`
    /// if the range is invalid.
    pub(crate) fn mapped(
        &mut self,
        writer: &mut Writer,
        process: ProcessIndex,
        module: Module,
        range: Range,
    ) -> Result<bool> {
        let Range { start_avma, end_avma, bias_avma } = range;
        if start_avma >= end_avma || end_avma > CODE_END_AVMA || module.path.is_empty() {
            return Ok(false);
        }
        let module = writer.add_module(module)?;
        if self.ranges.insert((module, range), ()).is_none() {
            writer.add_mapping(Mapping {
                process,
                module,
                start_avma,
                end_avma,
                bias_avma,
                loaded_ns: 0,
                unloaded_ns: u64::MAX,
            })?;
        }
        Ok(true)
    }

    /// All names, for the trace.
    pub(crate) fn tables(self) -> BTreeMap<ModuleKey, SymbolTable> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let tables = self.modules.into_iter().map(|(module, names)| {
            let key = ModuleKey { path: PathBuf::from(module.path), build_id: module.build_id };
            let entries = names.frames.into_iter().map(|(svma, frames)| {
                let last = frames.len().saturating_sub(1);
                let frame = |(place, frame): (usize, &Frame)| NamedFrame {
                    symbol: text(&frame.name),
                    file: text(&frame.file),
                    line: Some(frame.line).filter(|&line| line != 0),
                    is_inlined: place < last,
                };
                (svma, frames.iter().enumerate().map(frame).collect())
            });
            (key, SymbolTable::of_frames(entries))
        });
        tables.collect()
    }
}
