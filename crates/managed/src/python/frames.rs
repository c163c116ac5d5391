//! Frames of calls: their local variables.

use super::objects::{self, is_pointer};
use super::reader::Reader;
use super::types::Type;
use crate::error::Result;
use crate::heap::{EdgeKind, EdgeName};
use heapr_known::cpython::Layout;

/// Largest number of local variables, and of words on a frame's stack.
const LOCALS_MAX: u64 = 1 << 16;
/// Offset of the object of globals in frame objects up to 3.10 begins after the previous frame.
const OLD_NAMES: [u64; 3] = [72, 88, 80];
/// Fields of a frame object that are references, up to 3.10: previous frame, code, builtins,
/// globals, locals, trace function.
const OLD_FIELDS: [(u64, &str); 6] = [
    (24, "f_back"),
    (32, "f_code"),
    (40, "f_builtins"),
    (48, "f_globals"),
    (56, "f_locals"),
    (88, "f_trace"),
];
/// Owner of a frame whose data is in a frame object.
const OWNED_BY_OBJECT: u8 = 2;

/// References of a frame: the words, and their names.
pub(super) type FrameWords = Vec<(u64, EdgeName)>;

impl Reader<'_, '_> {
    /// Names of a frame's local variables.
    fn names_of_locals(&self, code_avma: u64) -> Vec<u64> {
        let tuple = |offset: u64| {
            let tuple_avma = self.pages.word_or_zero(code_avma + offset);
            let mut names = Vec::new();
            if is_pointer(tuple_avma) {
                let count = self.pages.word_or_zero(tuple_avma + objects::SIZE).min(LOCALS_MAX);
                self.pages.words(tuple_avma + self.layout.tuple_items, count, |_, word| names.push(word));
            }
            names
        };
        if self.layout.has_frame_structures() {
            return tuple(self.layout.code_local_names);
        }
        OLD_NAMES.iter().flat_map(|&offset| tuple(offset)).collect()
    }

    /// Returns the references of a frame: its code, its locals, and what lies on its stack.
    /// `frame_avma`: the structure, or the object up to 3.10.
    pub(super) fn words_of_frame(&mut self, frame_avma: u64) -> FrameWords {
        let layout: &Layout = self.layout;
        let code_avma = untagged(self.pages.word_or_zero(frame_avma + layout.frame_code));
        let mut found = Vec::new();
        if !is_pointer(code_avma) {
            return found;
        }
        let names = self.names_of_locals(code_avma);
        let count = if layout.has_frame_structures() {
            u64::from(self.pages.half(code_avma + layout.code_local_count).unwrap_or(0)).min(LOCALS_MAX)
        } else {
            names.len() as u64
        };
        let first_avma = frame_avma + layout.frame_first_local;
        for number in (0..count).take_while(|_| self.pages.spend(1)) {
            let word = untagged(self.pages.word_or_zero(first_avma + number * 8));
            if word == 0 {
                continue;
            }
            let name = match names.get(number as usize) {
                Some(&name) => self.attribute(EdgeKind::Variable, name),
                None => self.internal("(local)"),
            };
            found.push((word, name));
        }
        let on_stack = self.internal("(stack)");
        let (start_avma, top_avma) = self.stack_of(frame_avma, first_avma, count);
        let stack_count = top_avma.saturating_sub(start_avma) / 8;
        if stack_count <= LOCALS_MAX {
            self.pages.words(start_avma, stack_count, |_, word| found.push((untagged(word), on_stack)));
        }
        let code_name = self.internal("(code)");
        found.push((code_avma, code_name));
        if layout.has_frame_structures() {
            let fields = [(layout.frame_locals, "(locals)"), (layout.frame_globals, "(globals)")];
            for (offset, name) in fields {
                let name = self.internal(name);
                found.push((untagged(self.pages.word_or_zero(frame_avma + offset)), name));
            }
            // Function: behind the code from 3.12 on; before it in 3.11.
            let function = self.internal("(function)");
            let offset = if layout.version == 0x030b { 0 } else { 16 };
            found.push((untagged(self.pages.word_or_zero(frame_avma + offset)), function));
        }
        found
    }

    /// Start and end of a frame's stack; both are the same while the frame runs.
    fn stack_of(&self, frame_avma: u64, first_local_avma: u64, local_count: u64) -> (u64, u64) {
        let at_avma = frame_avma + self.layout.frame_top;
        match self.layout.version {
            ..=0x0309 => (self.pages.word_or_zero(frame_avma + 64), self.pages.word_or_zero(at_avma)),
            0x030a => {
                let depth = self.pages.half(at_avma).unwrap_or(0) as i32;
                let start_avma = self.pages.word_or_zero(frame_avma + 64);
                (start_avma, start_avma.saturating_add(depth.max(0) as u64 * 8))
            }
            0x030b..=0x030d => {
                let top = self.pages.half(at_avma).unwrap_or(0) as i32;
                let start_avma = first_local_avma + local_count * 8;
                (start_avma, first_local_avma.saturating_add(top.max(0) as u64 * 8))
            }
            _ => (first_local_avma + local_count * 8, self.pages.word_or_zero(at_avma)),
        }
    }

    /// Name of a frame, and its location.
    pub(super) fn name_of_frame(&mut self, code_avma: u64) -> (String, u32) {
        let name = self.name_of_code(code_avma).unwrap_or_else(|| "?".to_owned());
        match self.place_of_code(code_avma) {
            Some((file, line)) => {
                let short = file.rsplit('/').next().unwrap_or_default();
                (format!("frame {name} ({short}:{line})"), self.place(&file, line))
            }
            None => (format!("frame {name}"), 0),
        }
    }

    fn refer_all(&mut self, words: FrameWords) -> Result<()> {
        for (word, name) in words {
            self.refer(word, name)?;
        }
        Ok(())
    }

    pub(super) fn read_frame_object(&mut self, node: u32, avma: u64) -> Result<u64> {
        let layout: &Layout = self.layout;
        let (frame_avma, is_own) = if layout.has_frame_structures() {
            let frame_avma = self.pages.word_or_zero(avma + 24);
            let owner = self.pages.byte(frame_avma.wrapping_add(layout.frame_owner));
            (frame_avma, frame_avma == avma + layout.object_frame || owner == Some(OWNED_BY_OBJECT))
        } else {
            (avma, true)
        };
        if layout.has_frame_structures() {
            for (offset, name) in [(16, "f_back"), (32, "f_trace")] {
                let name = self.internal(name);
                self.refer(self.pages.word_or_zero(avma + offset), name)?;
            }
        } else {
            for (offset, name) in OLD_FIELDS {
                let name = self.internal(name);
                self.refer(self.pages.word_or_zero(avma + offset), name)?;
            }
        }
        if is_pointer(frame_avma) {
            let code_avma = untagged(self.pages.word_or_zero(frame_avma + layout.frame_code));
            if is_pointer(code_avma) {
                let (name, place) = self.name_of_frame(code_avma);
                let name = self.heap.strings.number(&name);
                self.heap.relabel(node, |label| {
                    label.name = name;
                    label.place = place;
                });
            }
            if is_own {
                let words = self.words_of_frame(frame_avma);
                self.refer_all(words)?;
            }
        }
        if layout.has_frame_structures() {
            return Ok(if is_own { self.bytes_of_locals(frame_avma) } else { 0 });
        }
        let count = self.pages.word_or_zero(avma + objects::SIZE);
        Ok(if count > LOCALS_MAX { 0 } else { count * 8 })
    }

    /// Bytes of the locals and the stack of a frame behind its structure.
    fn bytes_of_locals(&self, frame_avma: u64) -> u64 {
        let code_avma = untagged(self.pages.word_or_zero(frame_avma + self.layout.frame_code));
        if !is_pointer(code_avma) {
            return 0;
        }
        let [locals, stack] = [self.layout.code_local_count, self.layout.code_stack_count]
            .map(|offset| u64::from(self.pages.half(code_avma + offset).unwrap_or(0)).min(LOCALS_MAX));
        (locals + stack) * 8
    }

    pub(super) fn read_generator(&mut self, avma: u64, of: &Type) -> Result<u64> {
        let layout: &Layout = self.layout;
        let end = if layout.has_frame_structures() { layout.generator_frame } else { of.basic_bytes };
        for offset in (objects::HEAD_BYTES..end / 8 * 8).step_by(8) {
            let word = self.pages.word_or_zero(avma + offset);
            let is_weak_list = offset as i64 == of.weak_offset;
            if word == 0 || is_weak_list {
                continue;
            }
            let Some(target) = self.node_at(word)? else { continue };
            let name = self.offset(offset);
            self.push_edge(target, name)?;
        }
        if layout.has_frame_structures() {
            let state = self.pages.byte(avma + layout.generator_state).unwrap_or(0) as i8;
            let has_frame = if layout.version >= 0x030f { (0..=3).contains(&state) } else { state < 1 };
            if has_frame {
                let words = self.words_of_frame(avma + layout.generator_frame);
                self.refer_all(words)?;
            }
        }
        Ok(if layout.has_frame_structures() {
            self.bytes_of_locals(avma + layout.generator_frame)
        } else {
            0
        })
    }
}

/// Address in a word of a frame; the lowest bits are tags from 3.14 on.
pub(super) fn untagged(word: u64) -> u64 {
    // Both low bits: a small number, and no address.
    if word & 3 == 3 { 0 } else { word & !7 }
}
