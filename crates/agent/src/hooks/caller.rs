//! The caller of a hooked function, and the stack that is recorded for the call.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::stack_word;

use crate::arch::entry::Entry;
use crate::frames::frame::Start;
use crate::languages;
use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;
use crate::tree;

/// A hooked call: its entry, the caller's frame pointer register, and the called function's number
/// (see [`heapr_wire::CALLED`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(super) entry: Entry,
    pub(super) bp: usize,
    pub(super) called: u8,
}

impl Caller {
    #[inline(always)]
    pub(crate) fn new(entry: Entry, bp: usize, called: u8) -> Self {
        Self { entry, bp, called }
    }

    /// Returns the same call, attributed to another function.
    #[inline(always)]
    pub(crate) fn of_function(self, called: u8) -> Self {
        Self { called, ..self }
    }

    pub(crate) fn entry(self) -> Entry {
        self.entry
    }

    #[inline(always)]
    pub(crate) fn sp(self) -> usize {
        self.entry.sp()
    }

    #[inline(always)]
    pub(crate) fn start(self) -> Start {
        // SAFETY: the call has not returned.
        let pc = unsafe { self.entry.return_avma() };
        Start { pc, sp: self.entry.sp_after_return(), bp: self.bp }
    }
}

/// Returns the caller's stack, if events of this kind carry stacks: its node, and the called
/// function.
#[inline(always)]
pub(crate) fn stack_for(scope: &mut Scope, caller: Caller, flag: u32) -> u64 {
    let Some(pool) = AGENT.pool() else { return NO_STACK };
    if pool.control().flags.load(Relaxed) & flag == 0 {
        return NO_STACK;
    }
    stack_word(node_of(scope, caller), caller.called)
}

/// Returns the node of the caller's stack, with the language frames if there are any.
#[inline(always)]
pub(crate) fn node_of(scope: &mut Scope, caller: Caller) -> u32 {
    let native = stack::capture(scope, caller.start());
    if languages::are_spoken() { languages::whole_stack(scope, caller.start(), native) } else { native }
}

/// Stack word of an event without a stack.
pub(crate) const NO_STACK: u64 = stack_word(tree::ROOT, 0);
