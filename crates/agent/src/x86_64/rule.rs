//! A row of the unwind table in one word, for frames whose unwinding needs only (pc, sp, bp), which
//! are nearly all.

use core::num::NonZeroU64;

use super::byte_reader::Reader;
use super::call_frame::{Found, UnwindTables, find_row};
use super::go_stacks::is_left_for_c;
use super::signal_return::{is_signal_return, ucontext};
use super::unwind_row::{Cfa, Column, Expression, RBP, RETURN_ADDRESS, RSP, Row, STEP_COLUMNS};

/// The unwinding of a frame, packed:
///
/// ```text
///  63  60 59                          30 29                           0
/// +------+------------------------------+------------------------------+
/// | kind | a (30 bits, signed)          | b (30 bits, signed)          |
/// +------+------------------------------+------------------------------+
/// ```
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
pub struct Rule(NonZeroU64);

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

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The caller's state. After a signal frame `pc` is the interrupted address plus one, so that
    /// `pc - 1` always lies in the right instruction.
    Caller {
        /// Return address.
        pc: usize,
        /// Stack pointer after the return.
        sp: usize,
        /// Frame pointer register.
        bp: usize,
    },
    /// The frame has no caller.
    Root,
    /// (pc, sp, bp) do not suffice.
    Slow,
    /// A stack word could not be read.
    Unreadable,
}

impl Rule {
    /// Rule without unwind information: by the frame pointer, which code of run-time compilers
    /// maintains.
    pub const FRAME_POINTER: Self = Self::new(GUESS, 0, 0);
    /// Makes the rule of a plain frame: the caller's stack pointer lies `frame_bytes` above, and
    /// the return address right below it.
    pub(crate) const fn plain(frame_bytes: usize) -> Self {
        Self::new(SP, frame_bytes as i64, 0)
    }

    const FRAME_POINTER_ACROSS: Self = Self::new(OTHER_STACK, 0, 0);
    /// Makes the rule of a plain frame with the caller's frame pointer right below the return
    /// address.
    pub(crate) const fn plain_with_frame_pointer(frame_bytes: usize) -> Self {
        Self::new(SP_BP, frame_bytes as i64, -16)
    }
    /// Rule of a frame whose frame pointer points to the caller's frame pointer and the return
    /// address, as usual. The word below holds the caller's stack pointer: the callee has stored
    /// its own words above that pointer.
    pub(crate) const LINKED: Self = Self::new(LINKED, 0, 0);

    const IS_ROOT: Self = Self::new(ROOT, 0, 0);
    const IS_SLOW: Self = Self::new(SLOW, 0, 0);

    const fn new(kind: u64, a: i64, b: i64) -> Self {
        const FIELD: u64 = (1 << 30) - 1;
        let bits = kind << 60 | (a.cast_unsigned() & FIELD) << 30 | (b.cast_unsigned() & FIELD);
        match NonZeroU64::new(bits) {
            Some(bits) => Self(bits),
            None => Self(NonZeroU64::MAX),
        }
    }

    /// Makes a rule as [`Rule::new`] does, or `SLOW` if a field does not fit.
    fn fitting(kind: u64, a: i64, b: i64) -> Self {
        const LIMIT: i64 = 1 << 29;
        let fits = |value: i64| (-LIMIT..LIMIT).contains(&value);
        if fits(a) && fits(b) { Self::new(kind, a, b) } else { Self::IS_SLOW }
    }

    /// Unpacks the word of [`Rule::bits`].
    #[inline(always)]
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(Self)
    }

    /// Returns the word.
    #[inline(always)]
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0.get()
    }

    #[inline(always)]
    fn kind(self) -> u64 {
        self.0.get() >> 60
    }

    #[inline(always)]
    fn a(self) -> usize {
        ((self.0.get() << 4).cast_signed() >> 34) as usize
    }

    #[inline(always)]
    fn b(self) -> usize {
        ((self.0.get() << 34).cast_signed() >> 34) as usize
    }

    /// True if the frame is a signal trampoline: the caller's stack pointer may lie anywhere.
    #[inline(always)]
    #[must_use]
    pub fn is_signal_frame(self) -> bool {
        self.kind() == SIGNAL
    }

    /// True if unwind tables or the code locate the caller by a register other than the stack
    /// pointer: then it may run on another stack.
    #[inline(always)]
    #[must_use]
    pub fn may_change_stacks(self) -> bool {
        self.is_one_of(&[BP, BP_BP, DEREF_BP, OTHER_STACK])
    }

    #[inline(always)]
    fn is_one_of(self, kinds: &[u64]) -> bool {
        kinds.iter().fold(0, |mask, kind| mask | 1_u64 << kind) >> self.kind() & 1 != 0
    }

    /// True if the caller's location depends on the frame pointer register (and for `SLOW` on any
    /// register).
    #[inline(always)]
    #[must_use]
    pub fn uses_bp(self) -> bool {
        self.is_one_of(&[BP, BP_BP, DEREF_BP, GUESS, SLOW, OTHER_STACK, LINKED])
    }

    /// True if the caller's frame pointer register is read from the stack (the last word that a
    /// step reads), or the frame has no caller.
    #[inline(always)]
    #[must_use]
    pub fn restores_bp(self) -> bool {
        self.is_one_of(&[SP_BP, BP_BP, DEREF_BP, SIGNAL, GUESS, ROOT, OTHER_STACK, LINKED])
    }

    /// Returns, for a frame that needs its stack pointer alone, the distance up to the caller's
    /// stack pointer, right below which the return address lies.
    #[inline(always)]
    #[must_use]
    pub fn plain_frame_bytes(self) -> Option<usize> {
        self.is_one_of(&[SP, SP_BP]).then(|| self.a())
    }

    /// True if more than (pc, sp, bp) is needed.
    #[must_use]
    pub fn is_slow(self) -> bool {
        self.kind() == SLOW
    }

    /// Unwinds one frame. `pc` is its return address (`is_exact`: it was interrupted at `pc - 1`).
    /// `read` returns the stack word at an address; at most three are read.
    #[inline(always)]
    pub fn step(
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
        let Some(caller_pc) = read(cfa.wrapping_sub(8)) else { return Step::Unreadable };
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

/// Returns the rule at an address. If the module has no unwind information for it, the code is
/// assumed to have a frame pointer.
#[must_use]
pub fn rule_for(hdr: &UnwindTables, lookup_avma: usize) -> Rule {
    if is_left_for_c(hdr, lookup_avma) {
        return Rule::FRAME_POINTER_ACROSS;
    }
    match find_row(hdr, lookup_avma) {
        Some(found) => compact(&found),
        None if is_signal_return(hdr, lookup_avma) => {
            Rule::new(SIGNAL, ucontext::at(RSP) as i64, ucontext::at(RBP) as i64)
        }
        None if is_entered_by_return(hdr, lookup_avma) => Rule::IS_ROOT,
        None => Rule::FRAME_POINTER,
    }
}

/// True if the frame at `lookup_avma`, which no table describes, returns to the first instruction
/// of a function. A context of makecontext returns to `__start_context` like this. Then no call
/// precedes the return address, and there is no caller. (glibc itself says so, by an undefined
/// return address, only in some versions.)
pub(crate) fn is_entered_by_return(hdr: &UnwindTables, lookup_avma: usize) -> bool {
    let return_avma = lookup_avma.wrapping_add(1);
    find_row::<STEP_COLUMNS>(hdr, return_avma).is_some_and(|found| found.start_avma == return_avma)
}

/// Packs a row.
fn compact(found: &Found<STEP_COLUMNS>) -> Rule {
    let rule = compact_row(&found.row);
    // Only the rule of a signal frame marks the caller's address as exact.
    if found.is_signal_frame == rule.is_signal_frame() || rule == Rule::IS_ROOT {
        rule
    } else {
        Rule::IS_SLOW
    }
}

fn compact_row(row: &Row<STEP_COLUMNS>) -> Rule {
    let return_address = row.column(RETURN_ADDRESS);
    let stack_pointer = row.column(RSP);
    if let Column::Undefined = return_address {
        return Rule::IS_ROOT;
    }
    if let (Column::Expression(sp), Column::Expression(bp)) = (stack_pointer, row.column(RBP)) {
        return signal(row, return_address, sp, bp);
    }
    if !matches!(stack_pointer, Column::Same | Column::Undefined) {
        return Rule::IS_SLOW;
    }
    let bp = match row.column(RBP) {
        Column::Same | Column::Undefined => None,
        Column::Offset(offset) => Some(offset),
        Column::Expression(expression) => return realigned(row, return_address, expression),
        _ => return Rule::IS_SLOW,
    };
    let Column::Offset(-8) = return_address else { return Rule::IS_SLOW };
    match (row.cfa, bp) {
        (Cfa::Register(register, offset), None) if usize::from(register) == RSP => {
            Rule::fitting(SP, offset, 0)
        }
        (Cfa::Register(register, offset), Some(bp)) if usize::from(register) == RSP => {
            Rule::fitting(SP_BP, offset, bp)
        }
        (Cfa::Register(register, offset), None) if usize::from(register) == RBP => {
            Rule::fitting(BP, offset, 0)
        }
        (Cfa::Register(register, offset), Some(bp)) if usize::from(register) == RBP => {
            Rule::fitting(BP_BP, offset, bp)
        }
        (Cfa::Expression(expression), None) => plt(expression),
        _ => Rule::IS_SLOW,
    }
}

/// Packs a realigned stack: rbp at rbp + b, CFA at rbp + a.
fn realigned(row: &Row<STEP_COLUMNS>, return_address: Column, bp: Expression) -> Rule {
    let Cfa::Expression(cfa) = row.cfa else { return Rule::IS_SLOW };
    match (dereferenced(cfa), based(bp), return_address) {
        (Some((RBP, a)), Some((RBP, b)), Column::Offset(-8)) => Rule::fitting(DEREF_BP, a, b),
        _ => Rule::IS_SLOW,
    }
}

/// Packs a signal frame: rsp and the CFA are at rsp + a, the interrupted address in the next word,
/// rbp at rsp + b.
fn signal(row: &Row<STEP_COLUMNS>, return_address: Column, sp: Expression, bp: Expression) -> Rule {
    let (Cfa::Expression(cfa), Column::Expression(pc)) = (row.cfa, return_address) else {
        return Rule::IS_SLOW;
    };
    match (dereferenced(cfa), based(sp), based(pc), based(bp)) {
        (Some((RSP, a)), Some((RSP, same)), Some((RSP, behind)), Some((RSP, b)))
            if same == a && behind == a.wrapping_add(8) =>
        {
            Rule::fitting(SIGNAL, a, b)
        }
        _ => Rule::IS_SLOW,
    }
}

const OP_DEREF: u8 = 0x06;
const OP_BREG0: u8 = 0x70;

/// Parses an expression that is only `breg(register) offset`.
fn based(expression: Expression) -> Option<(usize, i64)> {
    let mut code = expression.code();
    let based = base(&mut code)?;
    code.is_at_end().then_some(based)
}

/// Parses an expression that is only `breg(register) offset; deref`.
fn dereferenced(expression: Expression) -> Option<(usize, i64)> {
    let mut code = expression.code();
    let based = base(&mut code)?;
    (code.u8()? == OP_DEREF && code.is_at_end()).then_some(based)
}

fn base(code: &mut Reader) -> Option<(usize, i64)> {
    let register = code.u8()?.checked_sub(OP_BREG0)?;
    if usize::from(register) > RETURN_ADDRESS {
        return None;
    }
    Some((usize::from(register), code.sleb()?))
}

/// Packs the linkers' expression for a procedure linkage table: `rsp + 8 + ((rip & 15) >= n) << 3`.
fn plt(expression: Expression) -> Rule {
    const LIT0: u8 = 0x30;
    let mut code = expression.code();
    let matched = || -> Option<i64> {
        if base(&mut code)? != (RSP, 8) || base(&mut code)? != (RETURN_ADDRESS, 0) {
            return None;
        }
        let [lit15, and, limit, ge, lit3, shl, plus] = code.bytes()?;
        let is_shape = [lit15, and, ge, lit3, shl, plus] == [LIT0 + 15, 0x1a, 0x2a, LIT0 + 3, 0x24, 0x22];
        (is_shape && code.is_at_end()).then_some(i64::from(limit.wrapping_sub(LIT0)))
    };
    let mut matched = matched;
    matched().map_or(Rule::IS_SLOW, |limit| Rule::fitting(PLT, limit, 0))
}
