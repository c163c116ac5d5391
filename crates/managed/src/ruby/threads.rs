//! Threads: their variables, and running methods with their local variables.

use super::naming::{CODE, internal_kind};
use super::procs::BEHIND_FLAGS;
use super::reader::Reader;
use super::values::Kind;
use crate::error::Result;
use crate::heap::{Edge, EdgeKind, EdgeName, Place, Root, RootKind};

/// Name of a thread's structure.
const THREAD: &str = "VM/thread";
/// Execution context: stack, its number of words, innermost control frame, variables.
const STACK: u64 = 0;
const STACK_WORDS: u64 = 8;
const FRAME: u64 = 16;
const VARIABLES: u64 = 56;
/// Control frame: top of its stack, code, self, end of its variables.
const TOP: u64 = 8;
const FRAME_CODE: u64 = 16;
const FRAME_SELF: u64 = 24;
const FRAME_VARIABLES: u64 = 32;
/// Flag of variables that are an object of their own.
const IS_OBJECT: u64 = 4;
/// Words behind the last variable: method, block, flags (at the end of the variables).
const WORDS_BEHIND: u64 = 3;
const FRAMES_MAX: usize = 1 << 14;
const STACK_WORDS_LEAST: u64 = 1 << 10;
const STACK_WORDS_MAX: u64 = 1 << 22;
const LOCALS_MAX: usize = 1 << 12;
/// Body of code: location (path, label, first line).
const BODY: u64 = 16;
const PATH: u64 = 64;
const LABEL: u64 = 80;
const LINE: u64 = 88;
const NAME_BYTES_MAX: u64 = 256;
/// Label of the code of the program's own file.
const MAIN: &str = "<main>";

impl Reader<'_, '_> {
    /// Adds a root for each thread and running method, and returns what their stacks have besides.
    pub(super) fn add_threads(&mut self) -> Result<Vec<u64>> {
        let threads: Vec<u64> = self
            .objects()
            .filter(|&avma| {
                self.values.kind(avma) == Kind::Data
                    && self.values.structure(avma).0.as_deref() == Some(THREAD)
            })
            .collect();
        let (mut words, mut count) = (Vec::new(), 0);
        for object in threads {
            let (_, thread) = self.values.structure(object);
            let context = self.values.word(thread, self.values.layout.thread_context);
            // A thread that has ended has no stack.
            let Some((_, frame, end)) = self.stack_of(context) else { continue };
            let name = if self.is_main(frame, end) {
                "thread main".to_owned()
            } else {
                count += 1;
                format!("thread {count}")
            };
            self.add_thread(object, context, name)?;
            self.add_frames(frame, end)?;
            words.extend(self.words_of_stack(context));
        }
        Ok(words)
    }

    /// Start of the stack of an execution context, its innermost control frame, and its end. `None`
    /// for memory of another form.
    pub(super) fn stack_of(&self, context: u64) -> Option<(u64, u64, u64)> {
        let (stack, frame) = (self.values.word(context, STACK), self.values.word(context, FRAME));
        let size = self.values.word(context, STACK_WORDS);
        let end = stack.checked_add(size.checked_mul(8)?)?;
        let frame_bytes = self.values.layout.frame_bytes;
        let is_stack = stack != 0
            && stack.is_multiple_of(8)
            && (STACK_WORDS_LEAST..STACK_WORDS_MAX).contains(&size)
            && (stack..end).contains(&frame)
            && (end - frame).is_multiple_of(frame_bytes);
        is_stack.then_some((stack, frame, end))
    }

    /// Words on the stack of an execution context, and those that its control frames hold.
    pub(super) fn words_of_stack(&self, context: u64) -> Vec<u64> {
        let Some((stack, mut frame, end)) = self.stack_of(context) else { return Vec::new() };
        let mut words = Vec::new();
        let top = self.values.word(frame, TOP).clamp(stack, frame);
        self.values.pages.words(stack, (top - stack) / 8, |_, word| words.push(word));
        while frame < end && self.values.pages.spend(1) {
            words.extend([FRAME_CODE, FRAME_SELF].map(|at| self.values.word(frame, at)));
            words.push(self.values.word(self.values.word(frame, FRAME_VARIABLES), BEHIND_FLAGS));
            frame += self.values.layout.frame_bytes;
        }
        words
    }

    fn add_thread(&mut self, object: u64, context: u64, root: String) -> Result<()> {
        let mut edges = Vec::new();
        let own = self.internal("(thread)");
        self.root_edge(&mut edges, object, own);
        let mut variables = Vec::new();
        self.values
            .id_entries(self.values.word(context, VARIABLES), |key, value| variables.push((key, value)));
        for (key, value) in variables {
            let name = self.ids.name(self.values, key).unwrap_or_default();
            let name = self.named(EdgeKind::Attribute, &format!("[:{name}]"));
            self.root_edge(&mut edges, value, name);
        }
        self.heap.roots.push(Root { name: root, kind: RootKind::Program, place: 0, edges });
        self.check()
    }

    pub(super) fn root_edge(&self, edges: &mut Vec<Edge>, word: u64, name: EdgeName) {
        if let Some(target) = self.slots.get(word) {
            edges.push(Edge { target, name });
        }
    }

    fn add_frames(&mut self, innermost: u64, end: u64) -> Result<()> {
        let mut frame = innermost;
        for _ in 0..FRAMES_MAX {
            if frame >= end {
                break;
            }
            let code = self.values.word(frame, FRAME_CODE);
            if self.is_code(code) {
                let (name, place) = self.name_of_frame(code);
                let edges = self.edges_of_frame(frame, code);
                // The program's own frame stands twice.
                let is_repeated = self.heap.roots.last().is_some_and(|last| {
                    last.name == name
                        && last.edges.first().map(|it| it.target) == edges.first().map(|it| it.target)
                });
                if !edges.is_empty() && !is_repeated {
                    self.heap.roots.push(Root { name, kind: RootKind::Program, place, edges });
                }
            }
            frame += self.values.layout.frame_bytes;
        }
        self.check()
    }

    /// Whether a thread runs the program's own file.
    fn is_main(&self, innermost: u64, end: u64) -> bool {
        let step = self.values.layout.frame_bytes as usize;
        let frames = (innermost..end).step_by(step).take(FRAMES_MAX);
        let codes =
            frames.map(|frame| self.values.word(frame, FRAME_CODE)).filter(|&code| self.is_code(code));
        codes.into_iter().any(|code| {
            let label = self.values.word(self.values.word(code, BODY), LABEL);
            self.values.text(label, NAME_BYTES_MAX).as_deref() == Some(MAIN)
        })
    }

    fn is_code(&self, avma: u64) -> bool {
        let flags = || self.values.flags(avma);
        self.slots.get(avma).is_some()
            && Kind::of(flags()) == Kind::Internal
            && internal_kind(flags()) == CODE
    }

    fn edges_of_frame(&mut self, frame: u64, code: u64) -> Vec<Edge> {
        let mut edges = Vec::new();
        let end = self.values.word(frame, FRAME_VARIABLES);
        let names = self.locals(code);
        if self.values.word(end, 0) & IS_OBJECT != 0 {
            let name = self.internal("(variables)");
            self.root_edge(&mut edges, self.values.word(end, BEHIND_FLAGS), name);
        } else {
            let count = names.len().min(LOCALS_MAX) as u64;
            let first = end.wrapping_sub((WORDS_BEHIND - 1 + count) * 8);
            for position in 0..count {
                let name = self.variable(&names, position);
                self.root_edge(&mut edges, self.values.word(first, position * 8), name);
            }
        }
        let own = self.internal("(self)");
        self.root_edge(&mut edges, self.values.word(frame, FRAME_SELF), own);
        edges
    }

    /// Name of a running method, and the index of its place.
    fn name_of_frame(&mut self, code: u64) -> (String, u32) {
        let values = self.values;
        let body = values.word(code, BODY);
        let label = values.text(values.word(body, LABEL), NAME_BYTES_MAX).unwrap_or_default();
        let path = values.word(body, PATH);
        let path = if values.kind(path) == Kind::Array { values.item(path, 0).unwrap_or(0) } else { path };
        let path = values.text(path, NAME_BYTES_MAX).unwrap_or_default();
        let line = if values.layout.is_line_an_object {
            values.word(body, LINE) >> 1
        } else {
            values.word(body, LINE) & u64::from(u32::MAX)
        };
        let line = u32::try_from(line).unwrap_or(0).max(1);
        let file = path.rsplit('/').next().unwrap_or_default().to_owned();
        if path.is_empty() {
            return (format!("frame {label}"), 0);
        }
        let file_number = self.heap.strings.number(&path);
        self.heap.places.push(Place { file: file_number, line });
        (format!("frame {label} ({file}:{line})"), self.heap.places.len() as u32)
    }
}
