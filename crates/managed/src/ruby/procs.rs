//! References of code, methods, variables of blocks, and native structures.

use rustc_hash::FxHashSet;

use super::ids::number_of;
use super::naming::{CALL, CALL_CACHE, CODE, METHOD, VARIABLES, internal_kind};
use super::reader::Reader;
use super::slots::Slot;
use super::values::CONTENTS;
use crate::error::Result;
use crate::heap::{EdgeKind, EdgeName};

/// Code: its body, and in that the number and address of its instructions.
const BODY: u64 = 16;
const INSTRUCTION_COUNT: u64 = 4;
const INSTRUCTIONS: u64 = 8;
const INSTRUCTIONS_MAX: u64 = 1 << 20;
/// Largest number of bytes that are read of a part of code.
const CODE_PART_BYTES_MAX: u64 = 1 << 20;
/// Variables of a block: code, end of the variables, their start, and the number of words.
const VARIABLES_CODE: u64 = 8;
const VARIABLES_START: u64 = 24;
const VARIABLES_COUNT: u64 = 32;
/// Words behind the variables: method, block or outer variables, flags, the object itself.
const WORDS_BEHIND: u64 = 4;
/// Largest number of local variables of a method.
const LOCALS_MAX: u64 = 1 << 16;
/// Method: its definition; words of that which may be objects.
const DEFINITION: u64 = 16;
const DEFINITION_WORDS: u64 = 4;
/// Cache of a call: its method, behind the class.
const CACHED_METHOD: u64 = 16;
/// Proc: self, end of its variables, code.
const PROC_VARIABLES: u64 = 8;
/// Offset of the object behind the end of variables.
pub(super) const BEHIND_FLAGS: u64 = 8;
/// Structures of the virtual machine, which lead to all other ones.
const OF_THE_MACHINE: [&str; 4] = ["VM", "VM/thread", "ractor", FIBER];
const FIBER: &str = "fiber";
/// Structures with a block's variables at their beginning.
const WITH_VARIABLES: [&str; 2] = ["proc", "binding"];
/// Structures of which the size is known without the C library's blocks.
const SIZES: [(&str, u64); 6] =
    [("proc", 40), ("binding", 48), ("method", 40), ("enumerator", 96), ("generator", 16), ("yielder", 8)];
/// Largest number of words of a native structure that are read.
const STRUCTURE_WORDS_MAX: u64 = 1 << 14;

impl Reader<'_, '_> {
    pub(super) fn read_internal(&mut self, slot: Slot, flags: u64) -> Result<()> {
        match internal_kind(flags) {
            VARIABLES => self.read_block_variables(slot.avma),
            CODE => self.read_code(slot),
            METHOD => {
                self.read_words(slot, 8)?;
                let definition = self.values.word(slot.avma, DEFINITION);
                let name = self.internal("(method)");
                for number in 1..=DEFINITION_WORDS {
                    self.refer(self.values.word(definition, number * 8), name)?;
                }
                self.claim(definition);
                Ok(())
            }
            // Its class is no reference: it is forgotten when the class goes.
            CALL_CACHE => self.read_words(slot, CACHED_METHOD),
            CALL => Ok(()),
            _ => self.read_words(slot, 8),
        }
    }

    /// Names of the local variables of code, by their position.
    pub(super) fn locals(&self, code_avma: u64) -> Vec<u64> {
        let body = self.values.word(code_avma, BODY);
        let names = self.values.word(body, self.values.layout.local_names);
        let count = self.values.pages.half(body.wrapping_add(self.values.layout.local_count)).unwrap_or(0);
        let mut found = Vec::new();
        self.values.pages.words(names, u64::from(count).min(LOCALS_MAX), |_, id| found.push(number_of(id)));
        found
    }

    /// Name of a variable; of one that the program did not name, its position.
    pub(super) fn variable(&mut self, names: &[u64], position: u64) -> EdgeName {
        let number = names.get(position as usize).copied().unwrap_or(0);
        match self.ids.name(self.values, number).filter(|name| number != 0 && !name.is_empty()) {
            Some(name) => self.named(EdgeKind::Variable, &name),
            None => self.internal("(variable)"),
        }
    }

    fn read_block_variables(&mut self, avma: u64) -> Result<()> {
        let code = self.values.word(avma, VARIABLES_CODE);
        let names = if self.slots.get(code).is_some() { self.locals(code) } else { Vec::new() };
        let start = self.values.word(avma, VARIABLES_START);
        let count = self.values.half(avma, VARIABLES_COUNT).min(LOCALS_MAX);
        let local_count = count.saturating_sub(WORDS_BEHIND);
        for position in 0..local_count {
            if !self.values.pages.spend(1) {
                break;
            }
            let name = self.variable(&names, position);
            self.refer(self.values.word(start, position * 8), name)?;
        }
        let own = self.internal("(code)");
        self.refer(code, own)?;
        self.refer(self.values.word(start, local_count * 8), own)?;
        // The block, or the end of the variables around these.
        let outer = self.values.word(start, (local_count + 1) * 8) & !3;
        let name = self.internal("(outer)");
        if !self.refer(outer, name)? {
            self.refer(self.values.word(outer, BEHIND_FLAGS), name)?;
        }
        self.claim(start);
        Ok(())
    }

    fn read_code(&mut self, slot: Slot) -> Result<()> {
        self.read_words(slot, 8)?;
        let body = self.values.word(slot.avma, BODY);
        if body == 0 {
            return Ok(());
        }
        let name = self.internal("(code)");
        for offset in (0..self.values.layout.code_bytes).step_by(8) {
            self.refer(self.values.word(body, offset), name)?;
        }
        // Caches, handlers and keywords are in memory of their own. Handlers are not aligned.
        for offset in (0..self.values.layout.code_bytes).step_by(8) {
            let Some(part) = self.blocks.at(self.values.word(body, offset)) else { continue };
            let part = self.blocks.block(part);
            if part.address_avma == body || !self.claim_new(part.address_avma) {
                continue;
            }
            for at in (0..part.usable_bytes.min(CODE_PART_BYTES_MAX)).step_by(4) {
                if self.values.pages.spend(1) {
                    self.refer(self.values.word(part.address_avma, at), name)?;
                }
            }
        }
        let count = u64::from(self.values.pages.half(body.wrapping_add(INSTRUCTION_COUNT)).unwrap_or(0));
        let first = self.values.word(body, INSTRUCTIONS);
        for number in 0..count.min(INSTRUCTIONS_MAX) {
            if !self.values.pages.spend(1) {
                break;
            }
            self.refer(self.values.word(first, number * 8), name)?;
        }
        self.claim(body);
        self.claim(first);
        Ok(())
    }

    /// Number of bytes of a native structure; 0 if it is not known.
    pub(super) fn structure_bytes(&self, name: Option<&str>, data: u64) -> u64 {
        match self.blocks.at(data) {
            Some(number) => self.blocks.block(number).usable_bytes,
            None => SIZES.iter().find(|(known, _)| name == Some(known)).map_or(0, |&(_, bytes)| bytes),
        }
    }

    /// Adds the references of an object with a native structure.
    pub(super) fn read_data(&mut self, slot: Slot) -> Result<()> {
        let (name, data) = self.values.structure(slot.avma);
        if data == slot.avma + 32 {
            return self.read_words(slot, CONTENTS + 16);
        }
        let name = name.as_deref();
        let is_machine = name.is_some_and(|name| OF_THE_MACHINE.contains(&name));
        if name.is_some_and(|name| WITH_VARIABLES.contains(&name)) {
            let variables = self.values.word(data, PROC_VARIABLES);
            let held = if slot.avma == self.main_binding {
                self.named(EdgeKind::Weak, "(variables)")
            } else {
                self.internal("(variables)")
            };
            self.refer(self.values.word(variables, BEHIND_FLAGS), held)?;
        }
        let words = (self.structure_bytes(name, data) / 8).min(STRUCTURE_WORDS_MAX);
        self.claim(data);
        if name == Some(FIBER) {
            self.read_fiber(data, words)?;
        }
        let held = self.internal("(native)");
        for number in 0..words {
            if !self.values.pages.spend(1) {
                break;
            }
            let word = self.values.word(data, number * 8);
            if !self.refer(word, held)? && !is_machine {
                self.refer_to_block(word, held)?;
            }
        }
        Ok(())
    }

    /// A fiber holds what is on its stack. Its execution context is recognised by its form.
    fn read_fiber(&mut self, data: u64, words: u64) -> Result<()> {
        let contexts = (0..words).map(|number| data + number * 8);
        let Some(context) = contexts.into_iter().find(|&context| self.stack_of(context).is_some()) else {
            return Ok(());
        };
        let name = self.internal("(stack)");
        let mut known = FxHashSet::default();
        for word in self.words_of_stack(context) {
            if known.insert(word) {
                self.refer(word, name)?;
            }
        }
        Ok(())
    }
}
