//! A function of an allocator inside of a program or a library, found by whoever reads symbols.

use std::mem::offset_of;

use heapr_wire::{INNER_HEAP_FIRST, INNER_HEAPS, InnerAction, InnerFunction, Signature};

use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::x86_64::{KeptCounted, Prologue, Sampling, calls_one_of, may_jump_to};

/// One function to be hooked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideFunction {
    /// As its file's table of symbols has it, with the module's file name behind.
    pub name: String,
    /// Where it is.
    pub address_avma: u64,
    /// 0: unknown.
    pub size_bytes: u64,
    /// What it does.
    pub signature: Signature,
    /// The heap that its blocks belong to; empty: the program's main heap.
    pub heap: String,
    /// The function that answers null where this one throws: called in its place.
    pub instead_avma: Option<u64>,
    /// It may throw, and nothing is called in its place: only where the program's unwinder knows
    /// the agent may it be called by that.
    pub may_throw: bool,
    /// No caller keeps anything in a register that the calling convention gives up.
    pub keeps_convention: bool,
    /// Functions with the same number are hooked only if those of them that free blocks can be: the
    /// file that they lie in.
    pub whole_of: Option<u64>,
}

impl InsideFunction {
    /// The function that the loader calls when it has loaded more.
    pub(crate) fn after_load(memory: &ProcessMemory, modules: &Modules) -> Option<Self> {
        const NAME: &str = "_dl_debug_state";
        let (_, symbol) = modules.find(memory, NAME)?;
        Some(Self {
            name: NAME.to_owned(),
            address_avma: symbol.address_avma,
            size_bytes: symbol.size_bytes,
            signature: Signature::of_word_untrusted(InnerAction::Quiet as u64)?,
            heap: String::new(),
            instead_avma: None,
            may_throw: false,
            keeps_convention: false,
            whole_of: None,
        })
    }

    /// Whether it is there, or behind the landing pad that it may begin with.
    pub(crate) fn begins_at(&self, avma: u64) -> bool {
        const LANDING_PAD_BYTES: u64 = 4;
        avma.wrapping_sub(self.address_avma) <= LANDING_PAD_BYTES
    }

    /// What the agent is told of its code, in its entry of the table.
    pub(crate) fn code_words(&self, entry_avma: u64) -> [(u64, u64); 2] {
        [
            (entry_avma + offset_of!(InnerFunction, code) as u64, self.address_avma),
            (entry_avma + offset_of!(InnerFunction, code_bytes) as u64, self.size_bytes),
        ]
    }

    /// How its calls are counted where they are sampled; `None`: each goes to the agent.
    /// `is_other`: whether another hooked function is there.
    pub(crate) fn counted(
        &self,
        memory: &ProcessMemory,
        prologue: &Prologue,
        sampling: Sampling,
        is_other: &dyn Fn(u64) -> bool,
    ) -> Option<KeptCounted> {
        let (body, _) = self.code(memory);
        // Blocks of a heap of their own are all recorded.
        if !self.heap.is_empty() || body.len() as u64 != self.size_bytes || prologue.calls() {
            return None;
        }
        let counted = KeptCounted::plan(self.signature, &body, sampling)?;
        let is_asked = self.signature.action != InnerAction::Free;
        let may_jump = is_asked && may_jump_to(memory, self.address_avma, self.size_bytes, is_other);
        (!may_jump).then_some(counted)
    }

    /// Its code and what follows, as far as they are known.
    fn code(&self, memory: &ProcessMemory) -> (Vec<u8>, Vec<u8>) {
        const BEHIND_BYTES: usize = 16;
        let bytes = if self.size_bytes == 0 { 64 } else { self.size_bytes.min(16 << 10) } as usize;
        let code = memory.read_vec(self.address_avma, bytes + BEHIND_BYTES);
        // At the end of what is mapped nothing follows.
        let mut body = code.or_else(|_| memory.read_vec(self.address_avma, bytes)).unwrap_or_default();
        let behind = body.split_off(bytes.min(body.len()));
        (body, if self.size_bytes == bytes as u64 { behind } else { Vec::new() })
    }

    /// Plans its first instructions. `Ok(None)`: they cannot be moved, but it calls one of the
    /// `seen` functions, and so is seen.
    pub(crate) fn prologue(
        &self,
        memory: &ProcessMemory,
        seen: &[u64],
    ) -> Result<Option<Prologue>, &'static str> {
        let (body, behind) = self.code(memory);
        // What is thrown must find its way.
        let planned = if self.instead_avma.is_some() || self.may_throw {
            Prologue::plan(self.address_avma, &body, &behind)
        } else {
            Prologue::plan_calling(self.address_avma, &body, &behind)
        };
        match planned {
            Err(_) if self.signature.action == InnerAction::Free && is_return(&body) => Err(DOES_NOTHING),
            Err(_) if calls_one_of(self.address_avma, &body, seen) => Ok(None),
            planned => planned.map(Some),
        }
    }
}

/// Whether a function returns at once.
fn is_return(code: &[u8]) -> bool {
    const LANDING_PAD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let body = code.strip_prefix(&LANDING_PAD).unwrap_or(code);
    matches!(body, [0xc3, ..] | [0xf3, 0xc3, ..])
}

/// The groups of which nothing is to be hooked. Where a function that frees cannot be, their blocks
/// would stand as live. (One that does nothing leaves its blocks where they are.) Where nothing may
/// throw through the agent, `is_attached`, blocks would be freed that nobody has seen.
pub(crate) fn broken_groups(
    memory: &ProcessMemory,
    functions: &[InsideFunction],
    is_attached: bool,
) -> Vec<u64> {
    let is_broken = |function: &&InsideFunction| match function.signature.action {
        InnerAction::Free => function.prologue(memory, &[]).is_err_and(|reason| reason != DOES_NOTHING),
        _ => function.may_throw && is_attached,
    };
    let grouped = functions.iter().filter(|function| function.whole_of.is_some());
    grouped.filter(is_broken).filter_map(|function| function.whole_of).collect()
}

/// Why a function that is too short is left alone, and the others of its group are not.
pub(crate) const DOES_NOTHING: &str =
    "it does nothing and has no room for a jump: what is given to it stands as live";

/// Why a function is left alone with those that it belongs to.
pub(crate) const NOT_ALL: &str = "another function that takes or frees the same blocks cannot be hooked";

/// Why a function that may throw is left alone after an attach.
pub(crate) const THROWS: &str =
    "it may throw through the agent, and the program has no form of it that does not";

/// The heaps of such functions, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct InsideHeaps {
    names: Vec<String>,
}

/// Bytes of a name that are kept.
const NAME_BYTES: usize = 32;

impl InsideHeaps {
    /// Those that a process has been told of.
    pub(crate) fn known(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().take_while(|name| !name.is_empty()).collect() }
    }

    /// The number of a function's heap; the main heap's where there are too many.
    pub(crate) fn number_of(&mut self, function: &InsideFunction) -> u64 {
        let name: String = function.heap.chars().filter(char::is_ascii).take(NAME_BYTES - 1).collect();
        if name.is_empty() {
            return 0;
        }
        let place = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        if place < INNER_HEAPS { (INNER_HEAP_FIRST + place) as u64 } else { 0 }
    }

    /// Offset in the table of names, and eight bytes that stand there.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u64, u64)> {
        self.names.iter().take(INNER_HEAPS).enumerate().flat_map(|(place, name)| {
            let mut bytes = [0; NAME_BYTES];
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            let words: Vec<(u64, u64)> = bytes
                .chunks_exact(8)
                .enumerate()
                .map(|(number, word)| {
                    let at = (place * NAME_BYTES + number * 8) as u64;
                    (at, u64::from_le_bytes(word.try_into().unwrap_or_default()))
                })
                .collect();
            words
        })
    }
}
