//! The distinct code locations that stacks return to, and the frames at each.
//!
//! A trace has far fewer locations than stack nodes (clang: 634,000 nodes, some 50,000 locations),
//! so that names are resolved by location.

use hashbrown::{HashMap, HashTable};
use heapr_trace::{
    CalledFunction, LanguageFrames, LanguagePlace, Mapping, ModuleIndex, ProcessIndex, StackIndex, StackNode,
};

use crate::frames::{FrameKey, FrameTable, Location};
use crate::integer_hash::mix;
use crate::name_table::Name;
use crate::stack_source::StackSource;
use crate::symbol_source::{SourceFrame, SymbolSource};

/// Number of a code location.
pub(crate) type CodeId = u32;

/// Marks a running address that belonged to several modules in turn.
const AMBIGUOUS: CodeId = CodeId::MAX;

/// A code location: an address in a module's file, or in a process outside all modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    module: Option<ModuleIndex>,
    /// Process of an address outside all modules; 0 otherwise.
    process: ProcessIndex,
    address: u64,
}

/// A running address with its code location.
#[derive(Debug, Clone, Copy)]
struct RunningAddress {
    process: ProcessIndex,
    avma: u64,
    code: CodeId,
}

#[derive(Debug, Default, Clone)]
/// Table of the code locations of a trace, with the frames at each.
pub struct CodeTable {
    running: HashTable<RunningAddress>,
    numbers: HashMap<Place, CodeId>,
    places: Vec<Place>,
    /// Ranges of addresses, by process, that several mappings used in turn; sorted, usually empty.
    shared_ranges: Vec<(ProcessIndex, u64, u64)>,
    /// Frames of location `n` are `locations[starts[n]..starts[n + 1]]`, innermost first.
    starts: Vec<u32>,
    locations: Vec<Location>,
    /// Whether a function has one frame per source line.
    tells_lines: bool,
    /// Choice of the frames to show; `None`: the choice of the stack source.
    shown: Option<LanguageFrames>,
    /// Modules that are interpreters of a language.
    interpreters: Vec<ModuleIndex>,
}

impl CodeTable {
    /// A table for a trace with these mappings.
    pub fn new(mappings: &[Mapping]) -> Self {
        Self { shared_ranges: shared_ranges(mappings), ..Self::default() }
    }

    /// Selects whether a function has one frame per source line.
    #[must_use]
    pub fn telling_lines(self, tells_lines: bool) -> Self {
        Self { tells_lines, ..self }
    }

    /// Selects the frames to show in stacks with frames of a language.
    #[must_use]
    pub fn showing(self, shown: Option<LanguageFrames>) -> Self {
        Self { shown, ..self }
    }

    /// The code location that a node returns to; a new location gets a number.
    pub(crate) fn intern(&mut self, stacks: &(impl StackSource + ?Sized), node: &StackNode) -> CodeId {
        let hash = mix(u64::from(node.process.0), node.return_address_avma);
        let is_same =
            |known: &RunningAddress| known.avma == node.return_address_avma && known.process == node.process;
        let known = self.running.find(hash, is_same).map(|known| known.code);
        match known {
            Some(AMBIGUOUS) => self.place_of(stacks, node),
            Some(code) => code,
            None => {
                let code = self.place_of(stacks, node);
                let is_shared = self.shared_ranges.iter().any(|&(process, start, end)| {
                    process == node.process && (start..end).contains(&call_address(node))
                });
                let entry = RunningAddress {
                    process: node.process,
                    avma: node.return_address_avma,
                    code: if is_shared { AMBIGUOUS } else { code },
                };
                self.running.insert_unique(hash, entry, |known| mix(u64::from(known.process.0), known.avma));
                code
            }
        }
    }

    fn place_of(&mut self, stacks: &(impl StackSource + ?Sized), node: &StackNode) -> CodeId {
        let place = match stacks.locate(node.process, call_address(node), node.first_seen_ns) {
            Some((module, svma)) => Place { module: Some(module), process: ProcessIndex(0), address: svma },
            None => Place { module: None, process: node.process, address: call_address(node) },
        };
        let places = &mut self.places;
        *self.numbers.entry(place).or_insert_with(|| {
            places.push(place);
            places.len() as CodeId - 1
        })
    }

    /// Records the module of `caller`, in which a frame of a language runs, as an interpreter.
    pub(crate) fn note_caller_of_language(
        &mut self,
        stacks: &(impl StackSource + ?Sized),
        caller: StackIndex,
    ) {
        if caller == StackIndex::EMPTY {
            return;
        }
        let code = self.intern(stacks, &stacks.node(caller));
        let module = self.places.get(code as usize).and_then(|place| place.module);
        if let Some(module) = module
            && !self.interpreters.contains(&module)
        {
            self.interpreters.push(module);
        }
    }

    /// Whether the frames of a location are hidden.
    fn is_hidden(&self, code: CodeId, shown: LanguageFrames) -> bool {
        match shown {
            LanguageFrames::Mixed => false,
            LanguageFrames::Native => self.language_place(code).is_some(),
            LanguageFrames::Own => {
                let module = self.places[code as usize].module;
                module.is_some_and(|module| self.interpreters.contains(&module))
            }
        }
    }

    /// Names the locations that have no names yet. Called after the last [`Self::intern`]; later
    /// calls of that need another call of this.
    pub(crate) fn resolve(
        &mut self,
        stacks: &(impl StackSource + ?Sized),
        symbols: &mut dyn SymbolSource,
        frames: &mut FrameTable,
    ) {
        let known = self.starts.len().saturating_sub(1);
        let shown = self.shown.unwrap_or_else(|| stacks.language_frames());
        let by_module = self.unnamed_by_module(known, shown);
        let mut named = NamedPlaces::new(known, self.places.len() - known, by_module.len());
        let mut addresses = Vec::new();
        let same_module = |a: &CodeId, b: &CodeId| {
            let (a, b) = (self.places[*a as usize], self.places[*b as usize]);
            a.module == b.module && a.process == b.process
        };
        for codes in by_module.chunk_by(same_module) {
            let first = self.places[codes[0] as usize];
            if let Some(name) =
                first.module.and_then(|module| CalledFunction::name_in(stacks.module_path(module)))
            {
                let symbol = Some(frames.names.intern(name));
                let frame = frames.intern(FrameKey { module: None, symbol, offset: 0, line: None });
                codes.iter().for_each(|&code| named.push(code, Location::of_frame(frame)));
                continue;
            }
            let module = first.module.map(|module| frames.names.intern(stacks.module_path(module)));
            let (languages, codes): (Vec<CodeId>, Vec<CodeId>) =
                codes.iter().partition(|&&code| module.is_none() && self.language_place(code).is_some());
            for code in languages {
                let Some(place) = self.language_place(code) else { continue };
                named.push(code, language_location(stacks, first.process, place, frames));
            }
            if codes.is_empty() {
                continue;
            }
            addresses.clear();
            addresses.extend(codes.iter().map(|&code| self.places[code as usize].address));
            let mut sink = |number: usize, found: &[SourceFrame<'_>]| {
                let Some((&code, &address)) = codes.get(number).zip(addresses.get(number)) else { return };
                let locations = found.iter().map(|frame| self.location(frames, module, address, frame));
                named.extend(code, locations);
            };
            match first.module {
                Some(module) => symbols.resolve(module, &addresses, &mut sink),
                None => symbols.resolve_unmapped(first.process, &addresses, &mut sink),
            }
            for code in codes {
                if !named.has(code) {
                    let offset = self.places[code as usize].address;
                    let frame = frames.intern(FrameKey { module, symbol: None, offset, line: None });
                    named.push(code, Location::of_frame(frame));
                }
            }
        }
        self.lay_out(&named);
    }

    /// Locations behind the first `known` that are to be shown, by module, process and address.
    fn unnamed_by_module(&self, known: usize, shown: LanguageFrames) -> Vec<CodeId> {
        let is_shown = |&code: &CodeId| !self.is_hidden(code, shown);
        let mut by_module: Vec<CodeId> =
            (known as CodeId..self.places.len() as CodeId).filter(is_shown).collect();
        by_module.sort_unstable_by_key(|&code| {
            let place = self.places[code as usize];
            (place.module, place.process, place.address)
        });
        by_module
    }

    /// Interns a frame that the symbols give for an address.
    fn location(
        &self,
        frames: &mut FrameTable,
        module: Option<Name>,
        address: u64,
        found: &SourceFrame<'_>,
    ) -> Location {
        let symbol = found.symbol.map(|symbol| frames.names.intern(symbol));
        let offset = if symbol.is_some() { 0 } else { address };
        let file = found.file.map(|file| frames.names.intern(file));
        let line = file.zip(found.line).filter(|_| self.tells_lines);
        let frame = frames.intern(FrameKey { module, symbol, offset, line });
        frames.keep_file(frame, file);
        Location { frame, file, line: found.line.unwrap_or(0), is_inlined: found.is_inlined }
    }

    /// Appends the frames of newly named locations, by location number.
    fn lay_out(&mut self, named: &NamedPlaces) {
        self.starts.reserve_exact(self.places.len() + 1 - self.starts.len());
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.locations.reserve_exact(named.locations.len());
        for &(start, end) in &named.spans {
            self.locations.extend_from_slice(&named.locations[start as usize..end as usize]);
            self.starts.push(self.locations.len() as u32);
        }
    }

    /// The language function at a location; `None` for native code.
    fn language_place(&self, code: CodeId) -> Option<LanguagePlace> {
        let place = self.places[code as usize];
        if place.module.is_some() { None } else { LanguagePlace::of_call(place.address) }
    }

    /// Frames at a location, innermost first. After [`Self::resolve`] this is empty only for hidden
    /// frames.
    pub(crate) fn locations(&self, code: CodeId) -> &[Location] {
        let code = code as usize;
        &self.locations[self.starts[code] as usize..self.starts[code + 1] as usize]
    }

    /// Address of a location: in the module's file, or in the process.
    pub(crate) fn address(&self, code: CodeId) -> u64 {
        self.places[code as usize].address
    }

    /// Number of the location of a stack's innermost frame; `None` if it was not interned.
    pub(crate) fn code_of(&self, stacks: &(impl StackSource + ?Sized), stack: StackIndex) -> Option<CodeId> {
        let node = stacks.node(stack);
        let hash = mix(u64::from(node.process.0), node.return_address_avma);
        let known = self
            .running
            .find(hash, |known| known.avma == node.return_address_avma && known.process == node.process)?;
        if known.code != AMBIGUOUS {
            return Some(known.code);
        }
        let place = match stacks.locate(node.process, call_address(&node), node.first_seen_ns) {
            Some((module, svma)) => Place { module: Some(module), process: ProcessIndex(0), address: svma },
            None => Place { module: None, process: node.process, address: call_address(&node) },
        };
        self.numbers.get(&place).copied()
    }
}

/// Frames of newly named locations, module by module.
struct NamedPlaces {
    /// Number of the locations that had names before.
    known: usize,
    locations: Vec<Location>,
    /// Range in `locations` for each new location.
    spans: Vec<(u32, u32)>,
}

impl NamedPlaces {
    fn new(known: usize, unnamed: usize, shown: usize) -> Self {
        Self { known, locations: Vec::with_capacity(shown * 2), spans: vec![(0, 0); unnamed] }
    }

    fn push(&mut self, code: CodeId, location: Location) {
        self.extend(code, std::iter::once(location));
    }

    fn extend(&mut self, code: CodeId, locations: impl Iterator<Item = Location>) {
        let start = self.locations.len() as u32;
        self.locations.extend(locations);
        self.spans[code as usize - self.known] = (start, self.locations.len() as u32);
    }

    fn has(&self, code: CodeId) -> bool {
        let (start, end) = self.spans[code as usize - self.known];
        start < end
    }
}

/// The frame of a language at a location. The line is a part of the frame. Functions of such
/// languages are often as long as a file, and authors know the code by its lines.
fn language_location(
    stacks: &(impl StackSource + ?Sized),
    process: ProcessIndex,
    place: LanguagePlace,
    frames: &mut FrameTable,
) -> Location {
    let function = stacks.function(process, place);
    let module = Some(frames.names.intern(place.language.short_name()));
    let name = function.map(|function| function.name.as_str()).filter(|name| !name.is_empty());
    let symbol = Some(frames.names.intern(name.unwrap_or("(unknown)")));
    let file = function.filter(|function| !function.file.is_empty());
    let file = file.map(|function| frames.names.intern(&function.file));
    let line = file.zip((place.line != 0).then_some(place.line));
    let frame = frames.intern(FrameKey { module, symbol, offset: 0, line });
    Location { frame, file, line: place.line, is_inlined: false }
}

/// Address of the byte before the return address. It lies in the call instruction, and so in the
/// caller's range and line.
fn call_address(node: &StackNode) -> u64 {
    node.return_address_avma.saturating_sub(1)
}

/// Ranges in which two mappings of a process overlap (they used the addresses one after the other).
fn shared_ranges(mappings: &[Mapping]) -> Vec<(ProcessIndex, u64, u64)> {
    let mut sorted: Vec<&Mapping> = mappings.iter().collect();
    sorted.sort_unstable_by_key(|mapping| (mapping.process, mapping.start_avma));
    let mut shared = Vec::new();
    let mut reach: Option<(ProcessIndex, u64)> = None;
    for mapping in sorted {
        if let Some((process, end)) = reach
            && process == mapping.process
            && mapping.start_avma < end
        {
            shared.push((process, mapping.start_avma, end.min(mapping.end_avma)));
        }
        reach = match reach {
            Some((process, end)) if process == mapping.process => Some((process, end.max(mapping.end_avma))),
            _ => Some((mapping.process, mapping.end_avma)),
        };
    }
    shared
}
