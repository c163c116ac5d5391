//! Which frame of a stack is the program's own: the innermost one that is not the allocator's, the
//! language runtime's or a library's.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use heapr_trace::Trace;

use crate::allocator_frames::ALLOCATOR_FRAMES;
use crate::cull_list::CullList;
use crate::error::Result;
use crate::frame_pattern::{FramePattern, file_name};
use crate::frames::FrameView;
use crate::glob::Glob;

/// The built-in list of frames that are not a program's own.
pub(crate) const LIBRARY_FRAMES: &str =
    concat!(include_str!("library_frames.txt"), include_str!("wrapper_frames.txt"));

/// How lines of a list begin that name source files…
const SOURCE: &str = "source ";
/// …and those that count where the source file is not known.
const UNSOURCED: &str = "unsourced ";

/// How the names of code begin that V8 makes or brings along, outside of all modules.
const V8_CODE: &[&str] =
    &["Builtin:", "Builtins_", "BytecodeHandler:", "Bytecode:", "Stub:", "RegExp:", "Handler:", "Wasm:"];
/// What the names of functions hold that come with Node, or from packages.
const OF_NODE: &[&str] = &[" node:", " evalmachine.", "/node_modules/"];

/// How the names of Python's comprehensions end, which before 3.12 are functions: parts of who
/// calls them.
const COMPREHENSIONS: &[&str] = &["<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"];

/// Where a system keeps what programs share.
const SYSTEM_FOLDERS: &[&str] =
    &["/lib/", "/lib64/", "/lib32/", "/usr/", "/bin/", "/sbin/", "/nix/store/", "/gnu/store/", "/snap/"];

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The program's.
    Program,
    /// A library's that the program uses: named where a stack has nothing of the program's.
    Library,
    /// The allocator's, the language runtime's or the standard library's.
    Runtime,
}

/// Tells a program's own code from that of others.
#[derive(Debug, Clone, Default)]
pub struct OwnCode {
    /// What the user says is the program's: goes before all else.
    own: CullList,
    /// The runtime's and the standard library's.
    runtime: CullList,
    runtime_sources: Vec<Glob>,
    runtime_unsourced: CullList,
    /// Paths of the programs that ran.
    executables: HashSet<String>,
    /// All programs that ran came with the system, and its libraries may be the larger part of
    /// them.
    is_of_system: bool,
    answers: Answers,
}

/// Owners that were found: a frame is on many stacks, and is compared with hundreds of patterns.
#[derive(Debug, Clone, Default)]
struct Answers {
    hashes: RandomState,
    owners: Arc<Mutex<HashMap<u64, Owner>>>,
}

/// Answers that are kept.
const ANSWERS_MAX: usize = 1 << 18;

impl OwnCode {
    /// The built-in list, for the programs of a trace.
    #[must_use]
    pub fn of_trace(trace: &Trace) -> Self {
        Self::of_programs(trace.processes().iter().map(|process| process.executable.as_str()))
    }

    /// The built-in list, for programs of these paths.
    #[must_use]
    pub(crate) fn of_programs<'a>(executables: impl Iterator<Item = &'a str>) -> Self {
        let executables: HashSet<String> = executables.map(str::to_owned).collect();
        let mut code = Self { executables, ..Self::default() };
        for text in ALLOCATOR_FRAMES {
            // A test reads each of them.
            if let Ok(pattern) = FramePattern::parse(text) {
                code.runtime.add(pattern);
            }
        }
        // A test reads it.
        let _ = code.add_library_lines("built in", LIBRARY_FRAMES);
        let is_program = |path: &&String| {
            !path.is_empty() && !code.runtime.matches(Some(path.as_str()), None) && !is_shell(path)
        };
        let mut programs = code.executables.iter().filter(is_program).peekable();
        code.is_of_system = programs.peek().is_some() && programs.all(|path| is_system(path));
        code
    }

    /// Adds a list of frames that are not the program's.
    ///
    /// # Errors
    /// At the first line that is no pattern; names it.
    pub fn add_library_lines(&mut self, name: &str, text: &str) -> Result<()> {
        let mut plain = String::new();
        let mut unsourced = String::new();
        for line in text.lines() {
            if let Some(path) = line.trim().strip_prefix(SOURCE) {
                self.runtime_sources.push(Glob::new(path.trim()));
            }
            // Each has the lines of the other as blank ones: errors name the line.
            let rest = line.trim().strip_prefix(UNSOURCED);
            let is_plain = rest.is_none() && !line.trim().starts_with(SOURCE);
            plain += if is_plain { line } else { "" };
            unsourced += rest.unwrap_or_default();
            plain.push('\n');
            unsourced.push('\n');
        }
        self.answers = Answers::default();
        self.runtime.add_lines(name, &plain)?;
        self.runtime_unsourced.add_lines(name, &unsourced)
    }

    /// Adds a pattern of frames that are the program's, whatever a list says.
    pub fn add_own(&mut self, pattern: FramePattern) {
        self.answers = Answers::default();
        self.own.add(pattern);
    }

    /// Whose a frame is.
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
        // A function of a language is told by its file alone: names of code are no names of it.
        let is_of_language = module.is_some_and(heapr_trace::Language::is_of);
        if !is_of_language && self.runtime.matches(module, symbol) {
            return Owner::Runtime;
        }
        if let Some(file) = file
            && !self.runtime_sources.is_empty()
        {
            let file = file.to_ascii_lowercase();
            if self.runtime_sources.iter().any(|source| source.matches_lower(&file)) {
                return Owner::Runtime;
            }
        }
        if is_of_language {
            let is_part = symbol.is_some_and(|symbol| COMPREHENSIONS.iter().any(|end| symbol.ends_with(end)));
            return if is_part { Owner::Runtime } else { Owner::Program };
        }
        if file.is_none() && self.runtime_unsourced.matches(module, symbol) {
            return Owner::Runtime;
        }
        let Some(module) = module else {
            let is_own = symbol.is_some_and(|symbol| !is_code_of_v8(symbol));
            return if is_own { Owner::Program } else { Owner::Runtime };
        };
        if self.executables.contains(module) || self.is_of_system || !is_system(module) {
            Owner::Program
        } else {
            Owner::Library
        }
    }

    /// Place of the own frame in a stack, innermost first: the program's, or a library's where
    /// there is none; `None`: all is the runtime's.
    #[must_use]
    pub fn place(&self, frames: &[FrameView<'_>]) -> Option<usize> {
        let mut library = None;
        for (place, frame) in frames.iter().enumerate() {
            // A module's first byte is no code.
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

    /// The place itself, or where it has no name the nearest of its callers that has one and is
    /// owned alike: a stripped file names what it exports.
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

/// Further out a named function is another one's work.
pub const NAMED_WITHIN: usize = 3;

fn is_system(path: &str) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/usr/home/")
}

fn is_code_of_v8(symbol: &str) -> bool {
    V8_CODE.iter().any(|prefix| symbol.starts_with(prefix))
        || OF_NODE.iter().any(|part| symbol.contains(part))
}

/// Shells and the like start what is looked at.
fn is_shell(path: &str) -> bool {
    ["sh", "bash", "dash", "zsh", "fish", "env", "timeout", "nice", "sudo", "xargs", "time"]
        .contains(&file_name(path))
}

#[cfg(test)]
mod tests;
