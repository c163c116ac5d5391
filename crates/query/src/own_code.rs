//! Finds a stack's own frame: the innermost frame of user code. Frames of the allocator, the
//! language runtime and libraries are skipped.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::{DefaultHashBuilder, HashMap};
use heapr_trace::Trace;

use crate::allocator_frames::allocator_frames;
use crate::cull_list::CullList;
use crate::error::Result;
use crate::frame_pattern::{FramePattern, file_name};
use crate::frames::FrameView;
use crate::glob::Glob;
use crate::language_rules::{LanguageRules, OwnerByRules};

/// The built-in list of frames outside of user code.
pub(crate) const LIBRARY_FRAMES: &str =
    concat!(include_str!("library_frames.txt"), include_str!("wrapper_frames.txt"));

/// Prefix of the lines of a list that name source files.
const SOURCE: &str = "source ";
/// Prefix of the lines that apply only where the source file is unknown.
const UNSOURCED: &str = "unsourced ";

/// Prefix of the lines that name installed packages: code that the user chose and did not write.
const PACKAGE: &str = "package ";

/// Prefixes of the names of V8's JIT code and built-ins, which lie outside of all modules.
const V8_CODE: &[&str] =
    &["Builtin:", "Builtins_", "BytecodeHandler:", "Bytecode:", "Stub:", "RegExp:", "Handler:", "Wasm:"];
/// Parts of the names of functions that belong to Node, and to packages.
const OF_NODE: &[&str] = &[" node:", " evalmachine."];
const OF_NODE_PACKAGES: &str = "/node_modules/";

/// Suffixes of the names of Python's comprehensions. Before 3.12 these are functions, although they
/// are parts of their callers.
const COMPREHENSIONS: &[&str] = &["<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"];

/// Folders in which a system stores what programs share.
const SYSTEM_FOLDERS: &[&str] =
    &["/lib/", "/lib64/", "/lib32/", "/usr/", "/bin/", "/sbin/", "/nix/store/", "/gnu/store/", "/snap/"];

/// Owner of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The program.
    Program,
    /// A library or an installed package that the program uses; named if a stack has no frame of
    /// the program.
    Library,
    /// The allocator, the language runtime or the standard library.
    Runtime,
}

/// Distinguishes user code from other code.
#[derive(Debug, Clone, Default)]
pub struct OwnCode {
    /// Patterns that the user declares to be user code; these take precedence.
    own: CullList,
    /// Patterns of the runtime and the standard library.
    runtime: CullList,
    runtime_sources: Vec<Glob>,
    runtime_unsourced: CullList,
    /// Patterns of installed packages.
    packages: CullList,
    package_sources: Vec<Glob>,
    languages: LanguageRules,
    /// Paths of the recorded programs.
    executables: HashSet<String>,
    /// True if all recorded programs belong to the system, whose libraries may hold the larger part
    /// of their code.
    is_of_system: bool,
    answers: Answers,
}

/// Cache of owners: a frame is on many stacks, and is compared with hundreds of patterns.
#[derive(Debug, Clone, Default)]
struct Answers {
    hashes: DefaultHashBuilder,
    owners: Arc<Mutex<HashMap<u64, Owner>>>,
}

/// Largest number of cached answers.
const ANSWERS_MAX: usize = 1 << 18;

impl OwnCode {
    /// The built-in list for the programs of a trace.
    #[must_use]
    pub fn of_trace(trace: &Trace) -> Self {
        Self::of_programs(trace.processes().iter().map(|process| process.executable.as_str()))
    }

    /// The built-in list for the programs at these paths.
    #[must_use]
    pub(crate) fn of_programs<'a>(executables: impl Iterator<Item = &'a str>) -> Self {
        let executables: HashSet<String> = executables.map(str::to_owned).collect();
        let mut code = Self { executables, ..Self::default() };
        for text in allocator_frames() {
            // A test parses each pattern.
            if let Ok(pattern) = FramePattern::parse(text) {
                code.runtime.add(pattern);
            }
        }
        // A test parses the list.
        let _ = code.add_library_lines("built in", LIBRARY_FRAMES);
        let is_program = |path: &&String| {
            !path.is_empty() && !code.runtime.matches(Some(path.as_str()), None) && !is_shell(path)
        };
        let mut programs = code.executables.iter().filter(is_program).peekable();
        code.is_of_system = programs.peek().is_some() && programs.all(|path| is_system(path));
        code
    }

    /// Adds a list of frames outside of user code.
    ///
    /// # Errors
    /// The first line that is no pattern, named in the error.
    pub fn add_library_lines(&mut self, name: &str, text: &str) -> Result<()> {
        let mut plain = String::new();
        let mut unsourced = String::new();
        let mut packages = String::new();
        for line in text.lines() {
            let line = line.trim();
            // Each text has the others' lines as blank ones, because errors name the line.
            if let Some(rest) = line.strip_prefix(PACKAGE) {
                match rest.trim().strip_prefix(SOURCE) {
                    Some(path) => self.package_sources.push(Glob::new(path.trim())),
                    None => packages += rest,
                }
            } else if let Some(path) = line.strip_prefix(SOURCE) {
                self.runtime_sources.push(Glob::new(path.trim()));
            } else if let Some(rest) = line.strip_prefix(UNSOURCED) {
                unsourced += rest;
            } else {
                plain += line;
            }
            [&mut plain, &mut unsourced, &mut packages].into_iter().for_each(|text| text.push('\n'));
        }
        self.answers = Answers::default();
        self.runtime.add_lines(name, &plain)?;
        self.packages.add_lines(name, &packages)?;
        self.runtime_unsourced.add_lines(name, &unsourced)
    }

    /// Adds a pattern of frames that are user code, whatever a list says.
    pub fn add_own(&mut self, pattern: FramePattern) {
        self.answers = Answers::default();
        self.own.add(pattern);
    }

    /// The owner of a frame.
    #[must_use]
    pub fn owner(&self, module: Option<&str>, symbol: Option<&str>, file: Option<&str>) -> Owner {
        let hash = self.answers.hashes.hash_one((module, symbol, file));
        let mut owners = self.answers.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&owner) = owners.get(&hash) {
            return owner;
        }
        if owners.len() >= ANSWERS_MAX {
            owners.clear();
        }
        let owner = self.find_owner(module, symbol, file);
        owners.insert(hash, owner);
        owner
    }

    fn find_owner(&self, module: Option<&str>, symbol: Option<&str>, file: Option<&str>) -> Owner {
        if !self.own.is_empty() && self.own.matches(module, symbol) {
            return Owner::Program;
        }
        // A language's function is identified by its file and its own name: patterns for native
        // code do not apply.
        if let Some(language) = module.filter(|module| heapr_trace::Language::is_of(module)) {
            return self.owner_in_language(language, symbol, file);
        }
        if self.runtime.matches(module, symbol) {
            return Owner::Runtime;
        }
        let lower = file.map(str::to_ascii_lowercase);
        let is_in = |sources: &[Glob]| {
            lower.as_ref().is_some_and(|file| sources.iter().any(|source| source.matches_lower(file)))
        };
        if self.packages.matches(module, symbol) || is_in(&self.package_sources) {
            return Owner::Library;
        }
        if is_in(&self.runtime_sources) {
            return Owner::Runtime;
        }
        if file.is_none() && self.runtime_unsourced.matches(module, symbol) {
            return Owner::Runtime;
        }
        let Some(module) = module else {
            return match symbol {
                Some(symbol) if symbol.contains(OF_NODE_PACKAGES) => Owner::Library,
                Some(symbol) if !is_code_of_v8(symbol) => Owner::Program,
                _ => Owner::Runtime,
            };
        };
        if self.executables.contains(module) || self.is_of_system || !is_system(module) {
            Owner::Program
        } else {
            Owner::Library
        }
    }

    fn owner_in_language(&self, language: &str, symbol: Option<&str>, file: Option<&str>) -> Owner {
        let lower = file.map(str::to_ascii_lowercase);
        let is_in = |sources: &[Glob]| {
            lower.as_ref().is_some_and(|file| sources.iter().any(|source| source.matches_lower(file)))
        };
        let by_rules = self.languages.owner(language, symbol, file);
        if by_rules == OwnerByRules::Package || is_in(&self.package_sources) {
            return Owner::Library;
        }
        let is_part = symbol.is_some_and(|symbol| COMPREHENSIONS.iter().any(|end| symbol.ends_with(end)));
        if by_rules == OwnerByRules::Standard || is_part || is_in(&self.runtime_sources) {
            return Owner::Runtime;
        }
        Owner::Program
    }

    /// Whether a frame loads code for its caller: that of an `import`, `require` or `use`.
    #[must_use]
    pub fn is_loader(&self, module: Option<&str>, symbol: Option<&str>, file: Option<&str>) -> bool {
        match module {
            Some(module) => {
                heapr_trace::Language::is_of(module) && self.languages.is_loader(module, symbol, file)
            }
            None => symbol.is_some_and(|symbol| symbol.contains(" node:internal/modules/")),
        }
    }

    /// Index of the own frame in a stack, innermost first: the program's, or else a library's.
    /// `None` if all frames belong to the runtime.
    #[must_use]
    pub fn place(&self, frames: &[FrameView<'_>]) -> Option<usize> {
        let mut library = None;
        for (place, frame) in frames.iter().enumerate() {
            // Offset 0 is the module's first byte, where no code lies.
            if frame.symbol.is_none() && frame.offset == 0 {
                continue;
            }
            match self.owner(frame.module, frame.symbol, frame.file) {
                Owner::Program => return Some(self.named_place(frames, place)),
                Owner::Library => library = library.or(Some(place)),
                Owner::Runtime => {}
            }
        }
        library.map(|place| self.named_place(frames, place))
    }

    /// The own frame's index, if the innermost frames of a longer stack determine it.
    pub fn place_of_inner(&self, frames: &[FrameView<'_>]) -> Option<usize> {
        let place = self.place(frames).filter(|place| place + NAMED_WITHIN < frames.len())?;
        let frame = &frames[place];
        (self.owner(frame.module, frame.symbol, frame.file) == Owner::Program).then_some(place)
    }

    /// The index itself, if its frame has a name. Otherwise the nearest caller with a name and the
    /// same owner: a stripped file has names only for exported functions.
    fn named_place(&self, frames: &[FrameView<'_>], place: usize) -> usize {
        let owner = |frame: &FrameView<'_>| self.owner(frame.module, frame.symbol, frame.file);
        if frames[place].symbol.is_some() {
            return place;
        }
        let own = owner(&frames[place]);
        let mut near = (place + 1..frames.len()).take(NAMED_WITHIN);
        near.find(|&near| frames[near].symbol.is_some() && owner(&frames[near]) == own).unwrap_or(place)
    }
}

/// Largest distance to a named caller, in frames; one further out is doing other work.
pub const NAMED_WITHIN: usize = 3;

fn is_system(path: &str) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/usr/home/")
}

fn is_code_of_v8(symbol: &str) -> bool {
    V8_CODE.iter().any(|prefix| symbol.starts_with(prefix))
        || OF_NODE.iter().any(|part| symbol.contains(part))
}

/// Whether a path is that of a shell or the like, which only starts the recorded program.
fn is_shell(path: &str) -> bool {
    ["sh", "bash", "dash", "zsh", "fish", "env", "timeout", "nice", "sudo", "xargs", "time"]
        .contains(&file_name(path))
}

#[cfg(test)]
mod tests;
