//! Block that the kernel puts on the stack of a new program, and its copy with other environment
//! variables.
//!
//! ```text
//! sp  ->  argc | argv[0] … argv[argc-1] 0 | variables … 0
//!         | auxiliary vector (kind, value) … (0, 0) | strings
//! ```
//!
//! A longer block is placed below the old one, with the new strings between the two; the old
//! strings stay:
//!
//! ```text
//! new sp  -> argc | argv 0 | variables 0 | auxiliary vector | new strings
//!            | (old sp) old block and strings
//! ```

use crate::memory::{TargetMemory, Unreachable};
use heapr_proc::page_bytes;

/// A new program's block of arguments, variables and facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartBlock {
    rsp_avma: u64,
    arguments: Vec<u64>,
    variables: Vec<(u64, Vec<u8>)>,
    facts: Vec<(u64, u64)>,
}

/// Reason why a block is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBlock {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error("a list on the program's stack has more than {0} entries")]
    TooLong(usize),
}

pub(crate) const AT_NULL: u64 = 0;
/// Address of the program headers.
pub(crate) const AT_PHDR: u64 = 3;
pub(crate) const AT_PHNUM: u64 = 5;
/// Address of the loader; 0 for a program without one.
pub(crate) const AT_BASE: u64 = 7;
/// Not 0 if the program has more rights than its starter, so that the loader ignores variables.
pub(crate) const AT_SECURE: u64 = 23;
/// Name by which the program was started.
pub(crate) const AT_EXECFN: u64 = 31;

/// Largest number of entries. The kernel allows at most a quarter of the stack's limit for
/// arguments and variables.
const ENTRIES_MAX: usize = 1 << 20;
const FACTS_MAX: usize = 256;
/// Largest length in bytes of a variable's value, enough for a whole LD_PRELOAD.
const TEXT_BYTES_MAX: usize = 128 << 10;
/// Largest length in bytes of a variable's name that is searched for.
const NAME_BYTES_MAX: usize = 64;
const WORD_BYTES: u64 = 8;

impl StartBlock {
    /// Reads the block at `rsp_avma`, the stack pointer of a program that has executed no
    /// instruction yet.
    pub(crate) fn read(memory: &impl TargetMemory, rsp_avma: u64) -> Result<Self, BadBlock> {
        let mut words = Words { memory, next_avma: rsp_avma, kept: Vec::new() };
        let count = words.next()?;
        if count > ENTRIES_MAX as u64 {
            return Err(BadBlock::TooLong(ENTRIES_MAX));
        }
        let arguments = (0..count).map(|_| words.next()).collect::<Result<Vec<_>, _>>()?;
        // The null behind the arguments.
        words.next()?;
        let mut pointers = Vec::new();
        loop {
            match words.next()? {
                0 => break,
                _ if pointers.len() >= ENTRIES_MAX => return Err(BadBlock::TooLong(ENTRIES_MAX)),
                pointer => pointers.push(pointer),
            }
        }
        let mut facts = Vec::new();
        loop {
            let fact = (words.next()?, words.next()?);
            facts.push(fact);
            if fact.0 == AT_NULL {
                break;
            }
            if facts.len() >= FACTS_MAX {
                return Err(BadBlock::TooLong(FACTS_MAX));
            }
        }
        let mut variables = Vec::with_capacity(pointers.len());
        for pointer in pointers {
            variables.push((pointer, memory.read_string(pointer, NAME_BYTES_MAX)?));
        }
        Ok(Self { rsp_avma, arguments, variables, facts })
    }

    /// Value in the auxiliary vector.
    pub(crate) fn fact(&self, kind: u64) -> Option<u64> {
        self.facts.iter().find(|fact| fact.0 == kind).map(|fact| fact.1)
    }

    /// Whole value of a variable.
    pub(crate) fn variable(
        &self,
        memory: &impl TargetMemory,
        name: &str,
    ) -> Result<Option<Vec<u8>>, Unreachable> {
        let Some(place) = self.place(name) else { return Ok(None) };
        let value_avma = self.variables[place].0 + name.len() as u64 + 1;
        memory.read_string(value_avma, TEXT_BYTES_MAX).map(Some)
    }

    fn place(&self, name: &str) -> Option<usize> {
        let is_it = |(_, text): &(u64, Vec<u8>)| {
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        self.variables.iter().position(is_it)
    }

    /// Builds the block with some variables set. Returns its address, a stack pointer aligned like
    /// the kernel's, and its bytes.
    pub(crate) fn with_variables(&self, changes: &[(&str, &[u8])]) -> (u64, Vec<u8>) {
        let mut pointers: Vec<u64> = self.variables.iter().map(|&(pointer, _)| pointer).collect();
        let mut strings = Vec::new();
        let mut at = Vec::new();
        for (name, value) in changes {
            at.push((self.place(name), strings.len() as u64));
            strings.extend_from_slice(name.as_bytes());
            strings.push(b'=');
            strings.extend_from_slice(value);
            strings.push(0);
        }
        let added = at.iter().filter(|(place, _)| place.is_none()).count();
        let word_count = 1 + self.arguments.len() + 1 + pointers.len() + added + 1 + self.facts.len() * 2;
        let bytes = word_count as u64 * WORD_BYTES + strings.len() as u64;
        let rsp_avma = self.rsp_avma.wrapping_sub(bytes) & !15;
        let strings_avma = rsp_avma + word_count as u64 * WORD_BYTES;
        for (place, offset) in at {
            match place {
                Some(place) => pointers[place] = strings_avma + offset,
                None => pointers.push(strings_avma + offset),
            }
        }
        let mut words = vec![self.arguments.len() as u64];
        words.extend(&self.arguments);
        words.push(0);
        words.extend(pointers);
        words.push(0);
        words.extend(self.facts.iter().flat_map(|&(kind, value)| [kind, value]));
        let mut block: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        block.append(&mut strings);
        (rsp_avma, block)
    }
}

/// Reader of consecutive words, by the page.
struct Words<'a, M> {
    memory: &'a M,
    next_avma: u64,
    kept: Vec<u8>,
}

impl<M: TargetMemory> Words<'_, M> {
    fn next(&mut self) -> Result<u64, Unreachable> {
        if self.kept.is_empty() {
            let bytes = (page_bytes() - self.next_avma % page_bytes()) as usize;
            self.kept = self.memory.read_vec(self.next_avma, bytes)?;
            self.kept.reverse();
        }
        let mut word = [0; 8];
        for byte in &mut word {
            *byte = self.kept.pop().unwrap_or_default();
        }
        self.next_avma = self.next_avma.wrapping_add(WORD_BYTES);
        Ok(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use heapr_proc::Mapping;

    /// A stack that ends at `END`.
    struct Stack(Vec<u8>);
    const END: u64 = 0x7fff_0000_0000;

    impl Stack {
        fn start(&self) -> u64 {
            END - self.0.len() as u64
        }
    }

    impl TargetMemory for Stack {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> Result<(), Unreachable> {
            let from = address_avma.checked_sub(self.start()).map(|from| from as usize);
            let part = from.and_then(|from| self.0.get(from..from.checked_add(into.len())?));
            let part = part.ok_or(Unreachable { address_avma, bytes: into.len() })?;
            into.copy_from_slice(part);
            Ok(())
        }

        fn mappings(&self) -> std::io::Result<Vec<Mapping>> {
            Ok(Vec::new())
        }
    }

    /// Builds a stack in the kernel's layout: strings at the end, the block below, aligned.
    fn stack(arguments: &[String], variables: &[String]) -> (Stack, u64) {
        let mut strings = Vec::new();
        let mut offsets = Vec::new();
        for text in arguments.iter().chain(variables) {
            offsets.push(strings.len() as u64);
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
        }
        // The last words of a stack are not part of the block, so that no string ends with the
        // mapping.
        strings.resize(strings.len() + 300, 0);
        let strings_avma = END - strings.len() as u64;
        let pointer = |offset: &u64| strings_avma + offset;
        let (first, second) = offsets.split_at(arguments.len());
        let mut words = vec![arguments.len() as u64];
        words.extend(first.iter().map(pointer));
        words.push(0);
        words.extend(second.iter().map(pointer));
        words.extend([0, AT_BASE, 0x7f00_0000_0000, AT_SECURE, 0, AT_NULL, 0]);
        let sp = (strings_avma - words.len() as u64 * 8) & !15;
        let mut bytes = vec![0; 64 << 10];
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
        bytes.resize(bytes.len() + (strings_avma - sp) as usize % 16, 0);
        bytes.resize((64 << 10) + (strings_avma - sp) as usize, 0);
        bytes.append(&mut strings);
        (Stack(bytes), sp)
    }

    fn text_of(stack: &Stack, pointer: u64) -> String {
        String::from_utf8(stack.read_string(pointer, 1 << 16).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn a_longer_block_says_the_same_and_the_changes(
            arguments in prop::collection::vec("[a-z/]{0,20}", 0..6),
            mut variables in prop::collection::vec("[A-Z]{1,6}=[a-z:/]{0,90}", 0..9),
            preload in prop::option::of("[a-z/.:]{0,80}"),
        ) {
            if let Some(preload) = &preload {
                variables.insert(variables.len() / 2, format!("LD_PRELOAD={preload}"));
            }
            let (mut stack, sp) = stack(&arguments, &variables);
            let block = StartBlock::read(&stack, sp).unwrap();
            let old = block.variable(&stack, "LD_PRELOAD").unwrap();
            prop_assert_eq!(old.map(|old| String::from_utf8(old).unwrap()), preload);
            let changes: [(&str, &[u8]); 2] = [("LD_PRELOAD", b"/agent.so:x"), ("HEAPR_SESSION", b"1:2")];
            let (new_sp, bytes) = block.with_variables(&changes);
            prop_assert_eq!(new_sp % 16, 0);
            prop_assert!(new_sp + bytes.len() as u64 <= sp);
            let from = (new_sp - stack.start()) as usize;
            stack.0[from..from + bytes.len()].copy_from_slice(&bytes);
            let new = StartBlock::read(&stack, new_sp).unwrap();
            prop_assert_eq!(&new.arguments, &block.arguments);
            prop_assert_eq!(&new.facts, &block.facts);
            let mut expected: Vec<String> = variables
                .iter()
                .map(|text| match text.starts_with("LD_PRELOAD=") {
                    true => "LD_PRELOAD=/agent.so:x".to_owned(),
                    false => text.clone(),
                })
                .collect();
            if !expected.iter().any(|text| text.starts_with("LD_PRELOAD=")) {
                expected.push("LD_PRELOAD=/agent.so:x".to_owned());
            }
            expected.push("HEAPR_SESSION=1:2".to_owned());
            let found: Vec<String> =
                new.variables.iter().map(|&(pointer, _)| text_of(&stack, pointer)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_stack_of_anything_is_an_error_or_a_block(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
            let stack = Stack(bytes);
            let _ = StartBlock::read(&stack, stack.start());
        }
    }
}
