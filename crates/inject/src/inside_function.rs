//! A function of an embedded allocator, found by a reader of symbols.

use std::mem::offset_of;

use heapr_wire::{INNER_HEAP_FIRST, INNER_HEAPS, InnerAction, InnerFunction, Signature};

use crate::arch::{AllRegistersCountdown, Prologue, Sampling, calls_one_of, may_jump_to};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;

/// A function that can be hooked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideFunction {
    /// Symbol of the function, followed by the module's file name.
    pub name: String,
    /// Address of the function.
    pub address_avma: u64,
    /// Size in bytes; 0 if unknown.
    pub size_bytes: u64,
    /// Effect and arguments of the function.
    pub signature: Signature,
    /// Heap that its blocks belong to; empty for the program's main heap.
    pub heap: String,
    /// Address of the substitute that the agent calls: it returns null where this function throws.
    pub instead_avma: Option<u64>,
    /// Whether the function may throw without a substitute. The agent may call it only if the
    /// program's unwinder knows the agent.
    pub may_throw: bool,
    /// Whether all callers are known to follow the calling convention's rules for registers.
    pub keeps_convention: bool,
    /// Group of functions (the file that they lie in) that are hooked only if all of its functions
    /// that free blocks can be.
    pub whole_of: Option<u64>,
}

impl InsideFunction {
    /// Finds the function that the loader calls after loading modules.
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

    /// True if the function begins at an address, or its code behind a landing pad does.
    pub(crate) fn begins_at(&self, avma: u64) -> bool {
        const LANDING_PAD_BYTES: u64 = 4;
        avma.wrapping_sub(self.address_avma) <= LANDING_PAD_BYTES
    }

    /// Words that describe the function's code in the agent's table.
    pub(crate) fn code_words(&self, entry_avma: u64) -> [(u64, u64); 2] {
        [
            (entry_avma + offset_of!(InnerFunction, code) as u64, self.address_avma),
            (entry_avma + offset_of!(InnerFunction, code_bytes) as u64, self.size_bytes),
        ]
    }

    /// Plan for counting its calls in a sampled process; `None`: each call goes to the agent.
    /// `is_other` returns whether another hooked function is at an address.
    pub(crate) fn counted(
        &self,
        memory: &ProcessMemory,
        prologue: &Prologue,
        sampling: Sampling,
        is_other: &dyn Fn(u64) -> bool,
    ) -> Option<AllRegistersCountdown> {
        let (body, _) = self.code(memory);
        // All blocks of separate heaps are recorded.
        if !self.heap.is_empty() || body.len() as u64 != self.size_bytes || prologue.calls() {
            return None;
        }
        let counted = AllRegistersCountdown::plan(self.signature, &body, sampling)?;
        let is_asked = self.signature.action != InnerAction::Free;
        let may_jump = is_asked && may_jump_to(memory, self.address_avma, self.size_bytes, is_other);
        (!may_jump).then_some(counted)
    }

    /// Code of the function and the bytes behind it, as far as known.
    fn code(&self, memory: &ProcessMemory) -> (Vec<u8>, Vec<u8>) {
        const BEHIND_BYTES: usize = 16;
        let bytes = if self.size_bytes == 0 { 64 } else { self.size_bytes.min(16 << 10) } as usize;
        let code = memory.read_vec(self.address_avma, bytes + BEHIND_BYTES);
        // There may be no mapped memory behind the function.
        let mut body = code.or_else(|_| memory.read_vec(self.address_avma, bytes)).unwrap_or_default();
        let behind = body.split_off(bytes.min(body.len()));
        (body, if self.size_bytes == bytes as u64 { behind } else { Vec::new() })
    }

    /// Plans the hook of its first instructions. `Ok(None)`: they cannot be moved, but the function
    /// calls one of the `seen` functions, so that its calls are recorded there.
    pub(crate) fn prologue(
        &self,
        memory: &ProcessMemory,
        seen: &[u64],
    ) -> Result<Option<Prologue>, &'static str> {
        let (body, behind) = self.code(memory);
        // An exception must be able to pass through.
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

/// True if a function returns at once.
fn is_return(code: &[u8]) -> bool {
    const LANDING_PAD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let body = code.strip_prefix(&LANDING_PAD).unwrap_or(code);
    matches!(body, [0xc3, ..] | [0xf3, 0xc3, ..])
}

/// Groups of which no function must be hooked. If a function that frees cannot be hooked, freed
/// blocks would count as live. (One that does nothing leaves its blocks live.) If `is_attached`,
/// exceptions cannot pass through the agent; without the functions that may throw, frees of
/// unrecorded blocks would be seen.
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

/// Reason for skipping a function that is too short, without skipping its group.
pub(crate) const DOES_NOTHING: &str =
    "it does nothing and has no room for a jump: what is given to it stands as live";

/// Reason for skipping a function together with its group.
pub(crate) const NOT_ALL: &str = "another function that takes or frees the same blocks cannot be hooked";

/// Reason for skipping a function that may throw after an attach.
pub(crate) const THROWS: &str =
    "it may throw through the agent, and the program has no form of it that does not";

/// Heaps of embedded allocators, numbered in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct InsideHeaps {
    names: Vec<String>,
}

/// Size in bytes of a heap's name in the agent's table.
const NAME_BYTES: usize = 32;

impl InsideHeaps {
    /// Creates the list from the names in the agent's table.
    pub(crate) fn known(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().take_while(|name| !name.is_empty()).collect() }
    }

    /// Number of a function's heap; that of the main heap if there are too many heaps.
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

    /// Offsets in the table of names, each with the eight bytes at it.
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
