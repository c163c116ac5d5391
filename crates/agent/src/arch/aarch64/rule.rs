//! A row of the unwind table in one word, for frames whose unwinding needs only (pc, sp, bp), which
//! are nearly all.

use super::unsigned;
use crate::arch::packed_rule::{Base, PackedRule, Step};

/// The unwinding of a frame, packed:
///
/// | kind | CFA | return address | caller's fp |
/// |---|---|---|---|
/// | `SP` | sp + a | at CFA + b | fp |
/// | `SP_FP` | sp + a | at CFA + b + 8 | at CFA + b |
/// | `FP` | fp + a | at CFA + b | fp |
/// | `FP_FP` | fp + a | at CFA + b + 8 | at CFA + b |
/// | `SIGNAL` | at sp + a: caller's sp; pc at sp + a + 8; fp at sp + b | | |
/// | `GUESS` | fp + 16 | at fp + 8 | at fp |
/// | `OTHER_STACK` | as `GUESS`, on another stack | | |
/// | `ROOT` | there is no caller | | |
/// | `LINKED` | at fp - 8, or fp + 16 if that is higher | at fp + 8 | at fp |
/// | `SLOW` | more registers are needed | | |
///
/// A return address may be signed (pointer authentication); a step returns it unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule(PackedRule);

const SP: u64 = 1;
const SP_FP: u64 = 2;
const FP: u64 = 3;
const FP_FP: u64 = 4;
const SIGNAL: u64 = 7;
const GUESS: u64 = 8;
const ROOT: u64 = 9;
const SLOW: u64 = 10;
const OTHER_STACK: u64 = 11;
const LINKED: u64 = 12;

/// Size in bytes of the record to which the frame pointer points: the caller's frame pointer and
/// the return address. The caller's stack begins at its end, or above it.
pub(crate) const FRAME_RECORD_BYTES: usize = 16;
/// Offset in bytes of the return address in the record.
pub(crate) const RETURN_ADDRESS_IN_RECORD: usize = 8;
/// Distance in bytes from the caller's stack pointer down to the return address, in frames that
/// [`Rule::plain_frame_bytes`] passes. Functions choose the record's location, so that it passes no
/// frame.
pub(crate) const RETURN_ADDRESS_BELOW: usize = 8;
/// Length in bytes of the expression of a procedure linkage table.
const LINKAGE_EXPRESSION_BYTES: usize = 11;

impl Rule {
    /// Rule without unwind information: by the frame pointer, which code of run-time compilers
    /// maintains.
    pub(crate) const FRAME_POINTER: Self = Self::new(GUESS, 0, 0);

    /// Makes the rule of a plain frame: the caller's stack pointer lies `frame_bytes` above, and
    /// the record ends right below it.
    pub(crate) const fn plain(frame_bytes: usize) -> Self {
        Self::new(SP_FP, frame_bytes as i64, -(FRAME_RECORD_BYTES as i64))
    }

    /// Rule by the frame pointer of a frame whose caller is on another stack.
    pub(crate) const FRAME_POINTER_ACROSS: Self = Self::new(OTHER_STACK, 0, 0);
    /// Makes the rule of a plain frame with the caller's frame pointer right below the return
    /// address.
    pub(crate) const fn plain_with_frame_pointer(frame_bytes: usize) -> Self {
        Self::plain(frame_bytes)
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
        let Some(return_address) = return_address else { return Self::IS_SLOW };
        match (base, frame_pointer) {
            (Base::StackPointer, None) => Self::fitting(SP, cfa, return_address),
            (Base::FramePointer, None) => Self::fitting(FP, cfa, return_address),
            (_, Some(fp)) if fp.wrapping_add(RETURN_ADDRESS_IN_RECORD as i64) != return_address => {
                Self::IS_SLOW
            }
            (Base::StackPointer, Some(fp)) => Self::fitting(SP_FP, cfa, fp),
            (Base::FramePointer, Some(fp)) => Self::fitting(FP_FP, cfa, fp),
        }
    }

    /// Returns the rule of a realigned stack, which takes more registers: compilers describe it by
    /// the frame pointer.
    pub(crate) fn of_realigned(_cfa: i64, _frame_pointer: i64, _return_address: Option<i64>) -> Self {
        Self::IS_SLOW
    }

    /// Returns the rule of a signal frame: the caller's stack pointer is at sp + `stack_pointer`,
    /// and the interrupted address in the next word. The frame pointer is at sp + `frame_pointer`.
    pub(crate) fn of_signal(stack_pointer: i64, frame_pointer: i64) -> Self {
        Self::fitting(SIGNAL, stack_pointer, frame_pointer)
    }

    /// Returns the rule of a procedure linkage table, which has no frame on this processor.
    pub(crate) fn of_linkage_table(
        _expression: &[u8; LINKAGE_EXPRESSION_BYTES],
        _return_address: Option<i64>,
    ) -> Self {
        Self::IS_SLOW
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
        self.is_one_of(&[FP, FP_FP, OTHER_STACK])
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
        self.is_one_of(&[FP, FP_FP, GUESS, SLOW, OTHER_STACK, LINKED])
    }

    /// True if the caller's frame pointer register is read from the stack (the last word that a
    /// step reads), or the frame has no caller.
    #[inline(always)]
    #[must_use]
    pub(crate) fn restores_bp(self) -> bool {
        self.is_one_of(&[SP_FP, FP_FP, SIGNAL, GUESS, ROOT, OTHER_STACK, LINKED])
    }

    /// Returns the distance up to the caller's stack pointer, for a frame that needs its stack
    /// pointer alone. Its return address must lie [`RETURN_ADDRESS_BELOW`] the caller's. That
    /// location differs by function, so that all frames take the general path.
    #[inline(always)]
    #[must_use]
    pub(crate) fn plain_frame_bytes(self) -> Option<usize> {
        None
    }

    /// True if more than (pc, sp, bp) is needed.
    #[cfg(test)]
    pub(crate) fn is_slow(self) -> bool {
        self.kind() == SLOW
    }

    /// Unwinds one frame. `_pc` is its return address (`_is_exact`: it was interrupted at `_pc -
    /// 1`). `read` returns the stack word at an address; at most three are read.
    #[inline(always)]
    pub(crate) fn step(
        self,
        _pc: usize,
        sp: usize,
        bp: usize,
        _is_exact: bool,
        mut read: impl FnMut(usize) -> Option<usize>,
    ) -> Step {
        let (a, b) = (self.a(), self.b());
        let (cfa, return_address_at, fp_at) = match self.kind() {
            SP..=FP_FP => {
                let cfa = (if self.kind() >= FP { bp } else { sp }).wrapping_add(a);
                let at = cfa.wrapping_add(b);
                if self.kind() & 1 == SP_FP & 1 {
                    (cfa, at.wrapping_add(RETURN_ADDRESS_IN_RECORD), Some(at))
                } else {
                    (cfa, at, None)
                }
            }
            // The ABI marks the outermost frame by a frame pointer of 0 (AAPCS64, 6.4.6).
            GUESS | OTHER_STACK if bp == 0 => return Step::Root,
            GUESS | OTHER_STACK => {
                let end = bp.wrapping_add(FRAME_RECORD_BYTES);
                (end, bp.wrapping_add(RETURN_ADDRESS_IN_RECORD), Some(bp))
            }
            SIGNAL => {
                let Some(caller_sp) = read(sp.wrapping_add(a)) else { return Step::Unreadable };
                let Some(caller_pc) = read(sp.wrapping_add(a).wrapping_add(8)) else {
                    return Step::Unreadable;
                };
                let Some(caller_fp) = read(sp.wrapping_add(b)) else { return Step::Unreadable };
                return Step::Caller { pc: caller_pc.wrapping_add(1), sp: caller_sp, bp: caller_fp };
            }
            ROOT => return Step::Root,
            LINKED => {
                let Some(caller_sp) = read(bp.wrapping_sub(8)) else { return Step::Unreadable };
                let Some(caller_pc) = read(bp.wrapping_add(8)) else { return Step::Unreadable };
                let Some(caller_fp) = read(bp) else { return Step::Unreadable };
                // An interpreter reserves room for all operands of a method. The frame of a call
                // lies among them, above the caller's stack pointer.
                let sp = caller_sp.max(bp.wrapping_add(FRAME_RECORD_BYTES));
                return Step::Caller { pc: unsigned(caller_pc), sp, bp: caller_fp };
            }
            _ => return Step::Slow,
        };
        let Some(caller_pc) = read(return_address_at) else { return Step::Unreadable };
        let caller_fp = match fp_at {
            None => bp,
            Some(address) => match read(address) {
                Some(value) => value,
                None => return Step::Unreadable,
            },
        };
        if caller_pc == 0 {
            return Step::Root;
        }
        Step::Caller { pc: unsigned(caller_pc), sp: cfa, bp: caller_fp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_of_an_interpreted_frame_never_lies_below_it() {
        const FP: usize = 0x7000;
        for (stored_sp, wanted_sp) in [(0x7100, 0x7100), (FP - 0x80, FP + FRAME_RECORD_BYTES)] {
            let read = |address: usize| match address - (FP - 8) {
                0 => Some(stored_sp),
                8 => Some(0x7200),
                16 => Some(0x35_0000_0000_4444),
                _ => None,
            };
            let Step::Caller { pc, sp, bp } = Rule::LINKED.step(0x1000, FP - 0x90, FP, false, read) else {
                panic!("no caller")
            };
            assert_eq!((pc, sp, bp), (0x4444, wanted_sp, 0x7200));
        }
    }
}
