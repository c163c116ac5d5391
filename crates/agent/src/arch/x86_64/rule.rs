//! A row of the unwind table in one word, for frames whose unwinding needs only (pc, sp, bp), which
//! are nearly all.

use crate::arch::packed_rule::{Base, PackedRule, Step};

/// The unwinding of a frame, packed:
///
/// | kind | CFA | return address | caller's bp |
/// |---|---|---|---|
/// | `SP` | sp + a | at CFA-8 | bp |
/// | `SP_BP` | sp + a | at CFA-8 | at CFA + b |
/// | `BP` | bp + a | at CFA-8 | bp |
/// | `BP_BP` | bp + a | at CFA-8 | at CFA + b |
/// | `DEREF_BP` | at bp + a | at CFA-8 | at bp + b |
/// | `PLT` | sp + 8 + ((pc & 15) >= a) * 8 | at CFA-8 | bp |
/// | `SIGNAL` | at sp + a: caller's sp; pc at sp + a + 8; bp at sp + b | | |
/// | `GUESS` | bp + 16 | at bp + 8 | at bp |
/// | `OTHER_STACK` | as `GUESS`, on another stack | | |
/// | `ROOT` | there is no caller | | |
/// | `LINKED` | at bp - 8 | at bp + 8 | at bp |
/// | `SLOW` | more registers are needed | | |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule(PackedRule);

const SP: u64 = 1;
const SP_BP: u64 = 2;
const BP: u64 = 3;
const BP_BP: u64 = 4;
const DEREF_BP: u64 = 5;
const PLT: u64 = 6;
const SIGNAL: u64 = 7;
const GUESS: u64 = 8;
const ROOT: u64 = 9;
const SLOW: u64 = 10;
const OTHER_STACK: u64 = 11;
const LINKED: u64 = 12;

/// Size in bytes of the record to which the frame pointer points: the caller's frame pointer and
/// the return address. The caller's stack begins above it.
pub(crate) const FRAME_RECORD_BYTES: usize = 16;
/// Offset in bytes of the return address in the record.
pub(crate) const RETURN_ADDRESS_IN_RECORD: usize = 8;
/// Distance in bytes from the caller's stack pointer, which is the CFA, down to the return address:
/// the same in all packed rules.
pub(crate) const RETURN_ADDRESS_BELOW: usize = 8;
const RETURN_ADDRESS_ABOVE_CFA: i64 = -(RETURN_ADDRESS_BELOW as i64);
/// Length in bytes of the expression of a procedure linkage table.
const LINKAGE_EXPRESSION_BYTES: usize = 11;

impl Rule {
    /// Rule without unwind information: by the frame pointer, which code of run-time compilers
    /// maintains.
    pub(crate) const FRAME_POINTER: Self = Self::new(GUESS, 0, 0);
    /// Makes the rule of a plain frame: the caller's stack pointer lies `frame_bytes` above, and
    /// the return address right below it.
    pub(crate) const fn plain(frame_bytes: usize) -> Self {
        Self::new(SP, frame_bytes as i64, 0)
    }

    /// Rule by the frame pointer of a frame whose caller is on another stack.
    pub(crate) const FRAME_POINTER_ACROSS: Self = Self::new(OTHER_STACK, 0, 0);
    /// Makes the rule of a plain frame with the caller's frame pointer right below the return
    /// address.
    pub(crate) const fn plain_with_frame_pointer(frame_bytes: usize) -> Self {
        Self::new(SP_BP, frame_bytes as i64, -16)
    }
    /// Rule of a frame whose frame pointer points to the caller's frame pointer and the return
    /// address, as usual. The word below holds the caller's stack pointer: the callee has stored
    /// its own words above that pointer.
    pub(crate) const LINKED: Self = Self::new(LINKED, 0, 0);

    /// Rule of a frame without a caller.
    pub(crate) const IS_ROOT: Self = Self::new(ROOT, 0, 0);
    /// Rule of a frame that needs more registers.
    pub(crate) const IS_SLOW: Self = Self::new(SLOW, 0, 0);

    const fn new(kind: u64, a: i64, b: i64) -> Self {
        Self(PackedRule::new(kind, a, b))
    }

    /// Makes a rule as [`Rule::new`] does, or `SLOW` if a field does not fit.
    fn fitting(kind: u64, a: i64, b: i64) -> Self {
        PackedRule::fitting(kind, a, b).map_or(Self::IS_SLOW, Self)
    }

    /// Returns the rule of a frame whose CFA is `base + cfa`. The caller's return address and frame
    /// pointer are at these distances from the CFA; `None`: still in their registers.
    pub(crate) fn of_frame(
        base: Base,
        cfa: i64,
        return_address: Option<i64>,
        frame_pointer: Option<i64>,
    ) -> Self {
        if return_address != Some(RETURN_ADDRESS_ABOVE_CFA) {
            return Self::IS_SLOW;
        }
        match (base, frame_pointer) {
            (Base::StackPointer, None) => Self::fitting(SP, cfa, 0),
            (Base::StackPointer, Some(bp)) => Self::fitting(SP_BP, cfa, bp),
            (Base::FramePointer, None) => Self::fitting(BP, cfa, 0),
            (Base::FramePointer, Some(bp)) => Self::fitting(BP_BP, cfa, bp),
        }
    }

    /// Returns the rule of a realigned stack: the CFA is at bp + `cfa`, the caller's frame pointer
    /// at bp + `frame_pointer`. The return address is at its distance from the CFA.
    pub(crate) fn of_realigned(cfa: i64, frame_pointer: i64, return_address: Option<i64>) -> Self {
        if return_address != Some(RETURN_ADDRESS_ABOVE_CFA) {
            return Self::IS_SLOW;
        }
        Self::fitting(DEREF_BP, cfa, frame_pointer)
    }

    /// Returns the rule of a signal frame: the caller's stack pointer is at sp + `stack_pointer`,
    /// and the interrupted address in the next word. The frame pointer is at sp + `frame_pointer`.
    pub(crate) fn of_signal(stack_pointer: i64, frame_pointer: i64) -> Self {
        Self::fitting(SIGNAL, stack_pointer, frame_pointer)
    }

    /// Returns the rule of a procedure linkage table, whose CFA linkers describe by the expression
    /// `rsp + 8 + ((rip & 15) >= n) << 3`.
    pub(crate) fn of_linkage_table(
        expression: &[u8; LINKAGE_EXPRESSION_BYTES],
        return_address: Option<i64>,
    ) -> Self {
        const LIT0: u8 = 0x30;
        let &[ref frame @ .., and, limit, ge, lit3, shl, plus] = expression;
        // breg7 (rsp) 8, breg16 (rip) 0, lit15.
        let is_shape = *frame == [0x77, 8, 0x80, 0, LIT0 + 15]
            && [and, ge, lit3, shl, plus] == [0x1a, 0x2a, LIT0 + 3, 0x24, 0x22];
        if !is_shape || return_address != Some(RETURN_ADDRESS_ABOVE_CFA) {
            return Self::IS_SLOW;
        }
        Self::fitting(PLT, i64::from(limit.wrapping_sub(LIT0)), 0)
    }

    /// Unpacks the word of [`Rule::bits`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        PackedRule::from_bits(bits).map(Self)
    }

    /// Returns the word.
    #[inline(always)]
    #[must_use]
    pub(crate) fn bits(self) -> u64 {
        self.0.bits()
    }

    #[inline(always)]
    fn kind(self) -> u64 {
        self.0.kind()
    }

    #[inline(always)]
    fn a(self) -> usize {
        self.0.a()
    }

    #[inline(always)]
    fn b(self) -> usize {
        self.0.b()
    }

    /// True if the frame is a signal trampoline: the caller's stack pointer may lie anywhere.
    #[inline(always)]
    #[must_use]
    pub(crate) fn is_signal_frame(self) -> bool {
        self.kind() == SIGNAL
    }

    /// True if unwind tables or the code locate the caller by a register other than the stack
    /// pointer: then it may run on another stack.
    #[inline(always)]
    #[must_use]
    pub(crate) fn may_change_stacks(self) -> bool {
        self.is_one_of(&[BP, BP_BP, DEREF_BP, OTHER_STACK])
    }

    #[inline(always)]
    fn is_one_of(self, kinds: &[u64]) -> bool {
        self.0.is_one_of(kinds)
    }

    /// True if the caller's location depends on the frame pointer register (and for `SLOW` on any
    /// register).
    #[inline(always)]
    #[must_use]
    pub(crate) fn uses_bp(self) -> bool {
        self.is_one_of(&[BP, BP_BP, DEREF_BP, GUESS, SLOW, OTHER_STACK, LINKED])
    }

    /// True if the caller's frame pointer register is read from the stack (the last word that a
    /// step reads), or the frame has no caller.
    #[inline(always)]
    #[must_use]
    pub(crate) fn restores_bp(self) -> bool {
        self.is_one_of(&[SP_BP, BP_BP, DEREF_BP, SIGNAL, GUESS, ROOT, OTHER_STACK, LINKED])
    }

    /// Returns, for a frame that needs its stack pointer alone, the distance up to the caller's
    /// stack pointer. The return address lies [`RETURN_ADDRESS_BELOW`] that one.
    #[inline(always)]
    #[must_use]
    pub(crate) fn plain_frame_bytes(self) -> Option<usize> {
        self.is_one_of(&[SP, SP_BP]).then(|| self.a())
    }

    /// True if more than (pc, sp, bp) is needed.
    #[cfg(test)]
    pub(crate) fn is_slow(self) -> bool {
        self.kind() == SLOW
    }

    /// Unwinds one frame. `pc` is its return address (`is_exact`: it was interrupted at `pc - 1`).
    /// `read` returns the stack word at an address; at most three are read.
    #[inline(always)]
    pub(crate) fn step(
        self,
        pc: usize,
        sp: usize,
        bp: usize,
        is_exact: bool,
        mut read: impl FnMut(usize) -> Option<usize>,
    ) -> Step {
        let (a, b) = (self.a(), self.b());
        let (cfa, bp_at) = match self.kind() {
            // Nearly all frames. There is no branch for each kind, because they are about equally
            // likely.
            SP..=BP_BP => {
                let cfa = (if self.kind() >= BP { bp } else { sp }).wrapping_add(a);
                (cfa, (self.kind() & 1 == SP_BP & 1).then_some(cfa.wrapping_add(b)))
            }
            // The ABI marks the outermost frame by a frame pointer of 0 (System V x86-64, 3.4.1).
            GUESS | OTHER_STACK if bp == 0 => return Step::Root,
            GUESS | OTHER_STACK => (bp.wrapping_add(16), Some(bp)),
            DEREF_BP => {
                let Some(cfa) = read(bp.wrapping_add(a)) else { return Step::Unreadable };
                (cfa, Some(bp.wrapping_add(b)))
            }
            PLT => {
                let exact = if is_exact { pc.wrapping_sub(1) } else { pc };
                (sp.wrapping_add(if exact & 15 >= a { 16 } else { 8 }), None)
            }
            SIGNAL => {
                let Some(caller_sp) = read(sp.wrapping_add(a)) else { return Step::Unreadable };
                let Some(caller_pc) = read(sp.wrapping_add(a).wrapping_add(8)) else {
                    return Step::Unreadable;
                };
                let Some(caller_bp) = read(sp.wrapping_add(b)) else { return Step::Unreadable };
                return Step::Caller { pc: caller_pc.wrapping_add(1), sp: caller_sp, bp: caller_bp };
            }
            ROOT => return Step::Root,
            LINKED => {
                let Some(caller_sp) = read(bp.wrapping_sub(8)) else { return Step::Unreadable };
                let Some(caller_pc) = read(bp.wrapping_add(8)) else { return Step::Unreadable };
                let Some(caller_bp) = read(bp) else { return Step::Unreadable };
                return Step::Caller { pc: caller_pc, sp: caller_sp, bp: caller_bp };
            }
            _ => return Step::Slow,
        };
        let Some(caller_pc) = read(cfa.wrapping_sub(RETURN_ADDRESS_BELOW)) else { return Step::Unreadable };
        let caller_bp = match bp_at {
            None => bp,
            Some(address) => match read(address) {
                Some(value) => value,
                None => return Step::Unreadable,
            },
        };
        if caller_pc == 0 {
            return Step::Root;
        }
        Step::Caller { pc: caller_pc, sp: cfa, bp: caller_bp }
    }
}
