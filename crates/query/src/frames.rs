//! Frames as queries compare them, and the code locations that they come from.

use hashbrown::HashTable;

use crate::integer_hash::mix;
use crate::name_table::{Name, NameTable};

/// A distinct frame: module and symbol, or module and offset without a symbol. The line belongs to
/// it where lines are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Identity of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameKey {
    /// Path; `None` for code outside all modules.
    pub(crate) module: Option<Name>,
    pub(crate) symbol: Option<Name>,
    /// Address in the file, or in the process if there is no module; 0 if there is a symbol.
    pub(crate) offset: u64,
    /// Source file and line, where lines are distinguished and this one is known.
    pub(crate) line: Option<(Name, u32)>,
}

impl FrameKey {
    fn hash(&self) -> u64 {
        let number = |name: Option<Name>| name.map_or(0, |Name(number)| u64::from(number) + 1);
        let function = mix(number(self.module) << 32 | number(self.symbol), self.offset);
        self.line
            .map_or(function, |(Name(file), line)| mix(function, u64::from(file) << 32 | u64::from(line)))
    }
}

/// A frame at an address, with the data that may differ between addresses of the same frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    pub(crate) frame: FrameId,
    pub(crate) file: Option<Name>,
    /// Source line; 0 if unknown.
    pub(crate) line: u32,
    pub(crate) is_inlined: bool,
}

impl Location {
    /// A frame without a place in a source.
    pub(crate) fn of_frame(frame: FrameId) -> Self {
        Self { frame, file: None, line: 0, is_inlined: false }
    }
}

/// A frame with its names, for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameView<'a> {
    /// Path of the module; `None` for code outside all modules.
    pub module: Option<&'a str>,
    /// Demangled symbol; `None` if unknown.
    pub symbol: Option<&'a str>,
    /// Source file of the call.
    pub file: Option<&'a str>,
    /// Source line of the call, from 1.
    pub line: Option<u32>,
    /// True if the function is inlined into its caller.
    pub is_inlined: bool,
    /// Address of the call in the module's file, or in the process if there is no module.
    pub offset: u64,
}

impl FrameView<'_> {
    /// Whether the frame belongs to a language's function instead of native code.
    #[must_use]
    pub fn is_of_language(&self) -> bool {
        self.module.is_some_and(heapr_trace::Language::is_of)
    }
}

/// Whether a symbol is a language's name for functions without a name. Two of them are the same
/// function only at the same line.
fn is_nameless(symbol: &str) -> bool {
    matches!(symbol, "(anonymous)" | "<lambda>" | "{closure}")
        || symbol.ends_with("::__ANON__")
        || symbol.ends_with(".<lambda>")
}

/// All distinct frames of a query.
#[derive(Debug, Default, Clone)]
pub struct FrameTable {
    pub(crate) names: NameTable,
    keys: Vec<FrameKey>,
    /// The frame of the whole function, without a line, for each frame.
    functions: Vec<FrameId>,
    /// A source file of each frame.
    files: Vec<Option<Name>>,
    numbers: HashTable<u32>,
}

impl FrameTable {
    pub(crate) fn intern(&mut self, key: FrameKey) -> FrameId {
        let hash = key.hash();
        if let Some(&number) = self.numbers.find(hash, |&number| self.keys[number as usize] == key) {
            return FrameId(number);
        }
        let function = match key.line {
            Some(_) if !key.symbol.is_some_and(|symbol| is_nameless(self.names.get(symbol))) => {
                Some(self.intern(FrameKey { line: None, ..key }))
            }
            _ => None,
        };
        let number = self.keys.len() as u32;
        self.functions.push(function.unwrap_or(FrameId(number)));
        self.files.push(key.line.map(|(file, _)| file));
        let keys = &self.keys;
        self.numbers.insert_unique(hash, number, |&number| keys[number as usize].hash());
        self.keys.push(key);
        FrameId(number)
    }

    pub(crate) fn key(&self, frame: FrameId) -> FrameKey {
        self.keys[frame.0 as usize]
    }

    /// The frame of the whole function of a frame, without a line.
    #[must_use]
    pub fn function(&self, frame: FrameId) -> FrameId {
        self.functions[frame.0 as usize]
    }

    /// Remembers a source file of a frame, unless it has one already.
    pub(crate) fn keep_file(&mut self, frame: FrameId, file: Option<Name>) {
        for frame in [frame, self.function(frame)] {
            let known = &mut self.files[frame.0 as usize];
            *known = known.or(file);
        }
    }

    /// A source file of a frame.
    pub fn file(&self, frame: FrameId) -> Option<&str> {
        self.files[frame.0 as usize].map(|name| self.names.get(name))
    }

    /// Number of all frames.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Number of the path of a frame's module; equal for frames of one module.
    pub fn module_name(&self, frame: FrameId) -> Option<Name> {
        self.key(frame).module
    }

    /// Path of a frame's module. `None` outside of modules, and where another tool's file names the
    /// module without a path.
    pub fn module(&self, frame: FrameId) -> Option<&str> {
        self.key(frame).module.map(|name| self.names.get(name)).filter(|path| !path.is_empty())
    }

    /// A frame's symbol.
    pub fn symbol(&self, frame: FrameId) -> Option<&str> {
        self.key(frame).symbol.map(|name| self.names.get(name))
    }

    /// The frame with the data that all its addresses share: without a source line, unless lines
    /// are distinguished.
    #[must_use]
    pub fn view(&self, frame: FrameId) -> FrameView<'_> {
        let place = self.key(frame).line;
        FrameView {
            module: self.module(frame),
            symbol: self.symbol(frame),
            file: place.map(|(file, _)| self.names.get(file)),
            line: place.map(|(_, line)| line),
            is_inlined: false,
            offset: self.key(frame).offset,
        }
    }
}
