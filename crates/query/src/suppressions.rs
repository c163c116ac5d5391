//! Rules for known memory that is not reported, in the syntax of LeakSanitizer or of Valgrind. One
//! file may use both.
//!
//! ```text
//! leak:PATTERN            a function, source file or module anywhere in the stack; ^ and $ hold it
//! {                       frames from the innermost on, in Valgrind's syntax
//!    a name
//!    Memcheck:Leak
//!    fun:malloc           a function   (allocating functions may be left out)
//!    ...                  any number of frames
//!    obj:*/libfoo.so*     a module
//!    src:file.c:10        a source file and, if it is there, a line
//! }
//! ```

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::cull_list::CullList;
use crate::frames::FrameView;
use crate::glob::{glob_match, glob_match_one};
use crate::symbol_forms::plain_symbol;

/// The built-in rules for harmless leaks.
const KNOWN: &str = include_str!("known_leaks.txt");
static ALLOCATORS: LazyLock<CullList> = LazyLock::new(CullList::built_in);

/// Largest number of frames of a stack that are compared with rules.
const FRAMES_MAX: usize = 512;

/// Texts of a frame that rules are compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameText<'a> {
    /// Path of the module.
    pub module: Option<&'a str>,
    /// Demangled symbol.
    pub symbol: Option<&'a str>,
    /// Source file.
    pub file: Option<&'a str>,
    /// Source line.
    pub line: Option<u32>,
    /// True if the frame stands for any line of the file.
    pub is_any_line: bool,
}

impl<'a> From<&FrameView<'a>> for FrameText<'a> {
    fn from(view: &FrameView<'a>) -> Self {
        Self {
            module: view.module,
            symbol: view.symbol,
            file: view.file,
            line: view.line,
            is_any_line: false,
        }
    }
}

/// Rules, in the order of their files; clones share them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Suppressions {
    rules: Arc<Vec<Rule>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rule {
    name: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    /// A glob that matches any text of any frame.
    Anywhere(String),
    /// Lines that match frames from the innermost on.
    Stack(Vec<Line>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Line {
    Any,
    /// The function's name as written, and demangled.
    Function(Vec<FunctionGlob>),
    Module(String),
    Source(String, Option<u32>),
}

/// Glob of a function's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FunctionGlob {
    glob: String,
    /// Longest part of the glob that each matching symbol contains.
    literal: String,
}

impl FunctionGlob {
    fn new(glob: String) -> Self {
        let literal = longest_literal(&glob).to_owned();
        Self { glob, literal }
    }

    fn matches(&self, symbol: &str) -> bool {
        let is = |text: &str| glob_match_one(self.glob.as_bytes(), text.as_bytes());
        // A literal that the symbol lacks is missing in all shorter forms, too.
        symbol.contains(self.literal.as_str()) && (is(symbol) || is(&plain_symbol(symbol)))
    }
}

/// Error of a file in neither syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SuppressionError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
}

impl Suppressions {
    /// The built-in list: memory that libraries hold until a program ends.
    #[must_use]
    pub fn known() -> Self {
        Self::parse(KNOWN).unwrap_or_default()
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// A line is neither LeakSanitizer's nor Valgrind's.
    pub fn parse(text: &str) -> Result<Self, SuppressionError> {
        let mut rules = Vec::new();
        let mut lines = text.lines().map(str::trim).enumerate();
        while let Some((at, line)) = lines.next() {
            let wrong = |what: String| SuppressionError { line: at + 1, what };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == "{" {
                let block = lines.by_ref().map_while(|(_, line)| (line != "}").then_some(line));
                let block: Vec<&str> =
                    block.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
                rules.extend(of_valgrind(&block).map_err(wrong)?);
                continue;
            }
            match line.split_once(':') {
                Some(("leak", pattern)) if !pattern.is_empty() => rules.push(Rule {
                    name: pattern.to_owned(),
                    what: What::Anywhere(glob_of_sanitizer(pattern)),
                }),
                // Files are shared between sanitizers, whose rules have other kinds.
                Some((kind, _)) if is_kind(kind) => {}
                _ => return Err(wrong(format!("{line:?} is neither leak:PATTERN nor a block in braces"))),
            }
        }
        Ok(Self { rules: Arc::new(rules) })
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule names a line.
    pub(crate) fn has_lines(&self) -> bool {
        let names_line = |line: &Line| matches!(line, Line::Source(_, Some(_)));
        let has_line = |rule: &Rule| matches!(&rule.what, What::Stack(lines) if lines.iter().any(names_line));
        self.rules.iter().any(has_line)
    }

    /// Whether all rules look at modules and functions alone, and not at source files.
    #[must_use]
    pub fn are_of_names(&self) -> bool {
        let is_of_names = |line: &Line| !matches!(line, Line::Source(..));
        self.rules
            .iter()
            .all(|rule| matches!(&rule.what, What::Stack(lines) if lines.iter().all(is_of_names)))
    }

    /// Returns these rules followed by those of another list.
    #[must_use]
    pub fn and(self, others: &Self) -> Self {
        match (self.is_empty(), others.is_empty()) {
            (_, true) => self,
            (true, false) => others.clone(),
            (false, false) => {
                Self { rules: Arc::new(self.rules.iter().chain(&*others.rules).cloned().collect()) }
            }
        }
    }

    /// Names of the rules, in order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }

    /// Number of the first rule that a stack matches; frames innermost first.
    #[must_use]
    pub fn rule_for(&self, frames: &[FrameText<'_>]) -> Option<usize> {
        self.first_rule(frames.len(), &mut |part, at| self.says(part, &frames[at]))
    }

    /// Variant of [`Self::rule_for`] for a stack of `count` frames. `says` tells whether a part of
    /// a rule matches the frame at an index.
    pub(crate) fn first_rule(
        &self,
        count: usize,
        says: &mut dyn FnMut(Part, usize) -> bool,
    ) -> Option<usize> {
        let count = count.min(FRAMES_MAX);
        let allocating = (0..count).take_while(|&at| says(Part::ALLOCATES, at)).count();
        (0..self.rules.len()).find(|&rule| {
            let mut says = |line: usize, at: usize| says(Part { rule, line: line + 1 }, at);
            match &self.rules[rule].what {
                What::Anywhere(_) => (0..count).any(|at| says(0, at)),
                What::Stack(lines) => {
                    let named = lines.iter().take_while(|line| line.is_allocating()).count();
                    is_begun_by(lines, 0, 0..count, &mut says)
                        || is_begun_by(lines, named, allocating..count, &mut says)
                }
            }
        })
    }

    /// Whether a part of a rule matches a frame.
    pub(crate) fn says(&self, part: Part, frame: &FrameText<'_>) -> bool {
        match (part.line.checked_sub(1), self.rules.get(part.rule).map(|rule| &rule.what)) {
            (None, _) => ALLOCATORS.matches(frame.module, frame.symbol),
            (Some(_), Some(What::Anywhere(glob))) => {
                let texts = [frame.symbol, frame.file, frame.module];
                texts.into_iter().flatten().any(|text| glob_match(glob.as_bytes(), text.as_bytes()))
            }
            (Some(line), Some(What::Stack(lines))) => lines.get(line).is_some_and(|line| line.matches(frame)),
            (Some(_), None) => false,
        }
    }

    /// Whether a rule may begin with a frame: as it is written, or without its allocating lines.
    pub(crate) fn may_begin_with(&self, frame: &FrameText<'_>) -> bool {
        self.beginnings().any(|lines| match lines.first() {
            None => true,
            Some(Line::Any) => false,
            Some(line) => line.matches(frame),
        })
    }

    /// Whether a rule that begins with any frames may go on with this one.
    pub(crate) fn may_pass(&self, frame: &FrameText<'_>) -> bool {
        let is_anywhere = |rule: usize| {
            matches!(self.rules[rule].what, What::Anywhere(_)) && self.says(Part { rule, line: 1 }, frame)
        };
        (0..self.rules.len()).any(is_anywhere)
            || self.beginnings().filter(|lines| matches!(lines.first(), Some(Line::Any))).any(|lines| {
                let named = lines.iter().find(|line| !matches!(line, Line::Any));
                named.is_none_or(|line| line.matches(frame))
            })
    }

    /// The lines of each rule for stacks, as they are written and without the allocating ones.
    fn beginnings(&self) -> impl Iterator<Item = &[Line]> {
        let lines = self.rules.iter().filter_map(|rule| match &rule.what {
            What::Anywhere(_) => None,
            What::Stack(lines) => Some(lines.as_slice()),
        });
        lines.flat_map(|lines| {
            let named = lines.iter().take_while(|line| line.is_allocating()).count();
            [lines, &lines[named..]]
        })
    }

    /// Number of parts of each rule.
    pub(crate) fn part_counts(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().map(|rule| match &rule.what {
            What::Anywhere(_) => 1,
            What::Stack(lines) => lines.len(),
        })
    }
}

/// A condition on a single frame: a line of a rule, or that the frame only allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rule: usize,
    /// Line number, from 1; 0 for [`Part::ALLOCATES`].
    pub(crate) line: usize,
}

impl Part {
    /// The condition that the frame only allocates; the same for all rules.
    pub(crate) const ALLOCATES: Self = Self { rule: 0, line: 0 };
}

impl Line {
    fn is_allocating(&self) -> bool {
        const NAMES: [&str; 9] = [
            "malloc",
            "calloc",
            "realloc",
            "memalign",
            "posix_memalign",
            "aligned_alloc",
            "reallocarray",
            "valloc",
            "pvalloc",
        ];
        let is_one = |FunctionGlob { glob: name, .. }: &FunctionGlob| {
            NAMES.contains(&name.as_str()) || name.starts_with("operator new") || name.starts_with("_Zn")
        };
        matches!(self, Self::Function(names) if names.iter().any(is_one))
    }

    fn matches(&self, frame: &FrameText<'_>) -> bool {
        let is = |glob: &String, text: &str| glob_match_one(glob.as_bytes(), text.as_bytes());
        match self {
            Self::Any => true,
            Self::Function(globs) => {
                frame.symbol.is_some_and(|symbol| globs.iter().any(|glob| glob.matches(symbol)))
            }
            Self::Module(glob) => frame.module.is_some_and(|module| is(glob, module)),
            Self::Source(glob, line) => {
                let name = |file: &str| is(glob, file) || is(glob, crate::frame_pattern::file_name(file));
                let is_there = |line: u32| frame.is_any_line || frame.line == Some(line);
                frame.file.is_some_and(name) && line.is_none_or(is_there)
            }
        }
    }
}

fn longest_literal(glob: &str) -> &str {
    glob.split(['*', '?', '(', '<', ' ']).max_by_key(|part| part.len()).unwrap_or("")
}

/// Whether the frames in `frames` begin with matches of the lines from `first` on; later frames do
/// not matter. Greedy with one step back, like a glob: `...` is the star.
fn is_begun_by(
    lines: &[Line],
    first: usize,
    frames: Range<usize>,
    says: &mut dyn FnMut(usize, usize) -> bool,
) -> bool {
    let (mut line, mut frame) = (first, frames.start);
    let mut after_any: Option<(usize, usize)> = None;
    loop {
        match lines.get(line) {
            None => return true,
            Some(Line::Any) => {
                after_any = Some((line + 1, frame));
                line += 1;
            }
            Some(_) if frame < frames.end && says(line, frame) => {
                line += 1;
                frame += 1;
            }
            Some(_) => match &mut after_any {
                Some((after, taken)) if *taken < frames.end => {
                    *taken += 1;
                    line = *after;
                    frame = *taken;
                }
                _ => return false,
            },
        }
    }
}

fn is_kind(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Parses the rule of a block: name, kind, frames. `None` if the block is not about leaks.
fn of_valgrind(block: &[&str]) -> Result<Option<Rule>, String> {
    let [name, kind, frames @ ..] = block else {
        return Err("a block has a name, a kind and frames".to_owned());
    };
    let is_leak = kind.split_once(':').is_some_and(|(tools, kind)| {
        kind.trim() == "Leak" && tools.split(',').any(|tool| tool.trim() == "Memcheck")
    });
    if !is_leak {
        return match kind.split_once(':') {
            Some((tools, _)) if tools.split(',').all(|tool| is_kind(tool.trim())) => Ok(None),
            _ => Err(format!("{kind:?} is no kind such as Memcheck:Leak")),
        };
    }
    let mut lines = Vec::new();
    for text in frames {
        lines.push(match text.split_once(':') {
            _ if *text == "..." => Line::Any,
            Some(("fun", glob)) => {
                let demangled = heapr_symbols::demangle(glob);
                let mut globs = vec![glob.to_owned()];
                if demangled != glob {
                    globs.push(demangled);
                }
                Line::Function(globs.into_iter().map(FunctionGlob::new).collect())
            }
            Some(("obj", glob)) => Line::Module(glob.to_owned()),
            Some(("src", place)) => match place.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
                Some((file, Ok(line))) => Line::Source(file.to_owned(), Some(line)),
                _ => Line::Source(place.to_owned(), None),
            },
            Some(("match-leak-kinds", _)) => continue,
            _ => return Err(format!("{text:?} is none of fun:, obj:, src:, ... in block {name:?}")),
        });
    }
    if lines.iter().all(|line| matches!(line, Line::Any)) {
        return Err(format!("block {name:?} names no frame"));
    }
    Ok(Some(Rule { name: (*name).to_owned(), what: What::Stack(lines) }))
}

/// Converts a pattern of LeakSanitizer, which matches anywhere in a text, to a glob.
fn glob_of_sanitizer(pattern: &str) -> String {
    let (start, rest) = pattern.strip_prefix('^').map_or(("*", pattern), |rest| ("", rest));
    let (rest, end) = rest.strip_suffix('$').map_or((rest, "*"), |rest| (rest, ""));
    format!("{start}{rest}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(symbol: &'static str) -> FrameText<'static> {
        FrameText { symbol: Some(symbol), module: Some("/usr/lib/libfoo.so.1"), ..FrameText::default() }
    }

    fn has(text: &str, frames: &[FrameText<'_>]) -> bool {
        Suppressions::parse(text).unwrap().rule_for(frames).is_some()
    }

    #[test]
    fn patterns_are_those_of_the_sanitizer() {
        let is_in = |pattern: &str, text: &'static str| has(&format!("leak:{pattern}"), &[frame(text)]);
        assert!(is_in("make", "foo::make_it") && !is_in("^make", "foo::make_it"));
        assert!(is_in("^foo*it$", "foo::make_it") && !is_in("^foo*it$", "foo::make_its"));
        assert!(is_in("a*a$", "aa") && is_in("*", "x"));
        assert!(is_in("libfoo.so", "x") && !is_in("libbar.so", "x"));
        assert!(is_in("^it$", "it") && !is_in("^it$", "itit"));
    }

    #[test]
    fn other_kinds_and_comments_are_passed_over() {
        let read = Suppressions::parse("# known\nleak:foo\n\nrace:bar\n  leak:^b*$  \n").unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["foo", "^b*$"]);
        let none = Suppressions::parse("{\n  uninitialised\n  Memcheck:Cond\n  fun:foo\n}\n").unwrap();
        assert!(none.is_empty());
        for text in [
            "what is this",
            "{\n name\n}",
            "{\n name\n Memcheck:Leak\n nonsense\n}",
            "{\nn\nMemcheck:Leak\n...\n}",
        ] {
            assert!(Suppressions::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blocks_of_valgrind_are_held_against_the_innermost_frames() {
        let block = |frames: &str| {
            format!("{{\n  a name\n  Memcheck:Leak\n  match-leak-kinds: definite\n{frames}\n}}")
        };
        let stack = [
            frame("operator new(unsigned long)"),
            frame("shop::Cache::add(int)"),
            frame("serve"),
            frame("main"),
        ];
        assert!(has(&block("fun:_Znwm\nfun:_ZN4shop5Cache3addEi\nfun:serve"), &stack));
        // Allocating frames may be missing in the rule or in the stack.
        assert!(has(&block("fun:malloc\nfun:shop::Cache::add"), &stack[1..]));
        assert!(has(&block("fun:shop::*"), &stack));
        assert!(has(&block("fun:malloc\n...\nfun:main"), &stack) && has(&block("...\nfun:serve"), &stack));
        assert!(!has(&block("fun:serve"), &stack) && !has(&block("fun:malloc\n...\nfun:other"), &stack));
        assert!(has(&block("...\nobj:*/libfoo.so.?"), &stack) && !has(&block("obj:libfoo"), &stack));
        let placed = FrameText { file: Some("/src/a.c"), line: Some(7), ..frame("f") };
        assert!(has(&block("src:a.c:7"), &[placed]) && has(&block("src:a.c"), &[placed]));
        assert!(!has(&block("src:a.c:8"), &[placed]));
    }

    #[test]
    fn what_libraries_keep_is_known() {
        let known = Suppressions::known();
        assert!(!known.is_empty());
        let unnamed = FrameText {
            module: Some("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"),
            ..FrameText::default()
        };
        assert!(known.rule_for(&[unnamed, frame("call_init"), frame("_dl_init")]).is_some());
        assert!(known.rule_for(&[unnamed, frame("main")]).is_none());
        assert!(known.rule_for(&[frame("plugin_init"), frame("call_init"), frame("_dl_init")]).is_none());
    }
}
