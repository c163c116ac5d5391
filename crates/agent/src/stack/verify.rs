//! The full unwind in the running process: for rules that need all registers, and to verify stacks
//! (`HEAPR_VERIFY`).

use crate::frames::bounds::KnownRanges;
use crate::frames::frame::{Frame, Start};
use crate::frames::stack_range::StackRange;
use crate::modules;
use crate::modules::rules;
use crate::state::{AGENT, own_stack};
use crate::tree;
use crate::unwind::full_unwind::{FullStep, Registers};

/// Largest number of frames that are unwound in one capture. Deeper stacks are cut at the outer
/// end. (That is twice what fits into the usual 8 MiB, at 16 bytes or more each.)
pub(crate) const FRESH_FRAMES_MAX: usize = 1 << 20;
/// Largest number of the agent's own frames between here and the program.
const OWN_FRAMES_MAX: usize = 64;

/// A full unwind in progress, with a copy of the thread's known stack bounds.
struct Unwind {
    registers: Registers,
    ranges: KnownRanges,
    is_main: bool,
    /// The stack that the last frame was on.
    range: StackRange,
}

impl Unwind {
    #[inline(always)]
    fn from_here(is_main: bool, ranges: KnownRanges) -> Self {
        Self { registers: Registers::here(), ranges, is_main, range: StackRange::EMPTY }
    }

    fn step(&mut self) -> FullStep {
        let low = self.registers.sp();
        let came_from = own_stack::left_at(low);
        if let Some(left) = came_from {
            // The agent's own stack, whose bounds are known.
            self.range = StackRange { low: left.start, high: left.end };
        } else if !self.range.contains(low) {
            let is_first = self.range == StackRange::EMPTY
                || own_stack::left_at(self.range.low).is_some()
                || self.ranges.own().contains(low);
            self.range = if is_first { self.ranges.find(low, self.is_main) } else { self.ranges.across(low) };
        }
        let (range, is_main) = (self.range, self.is_main);
        let tables = modules::unwind_tables(self.registers.pc().wrapping_sub(1));
        let is_exact = self.registers.is_exact;
        let may_change_stacks = self.registers.may_change_stacks(tables.as_ref());
        let ranges = &mut self.ranges;
        let mut across = StackRange::EMPTY;
        let made = match tables {
            None => modules::rule_of_made_code(self.registers.pc()),
            Some(_) => None,
        };
        let mut read = |address| {
            let mut may_read = range.may_read(address, low, is_exact);
            if !may_read && may_change_stacks {
                if across == StackRange::EMPTY {
                    across = match came_from {
                        Some(left) => ranges.find(left.program_sp, is_main),
                        None => ranges.across(address),
                    };
                }
                may_read = across.may_read(address, across.low, false);
            }
            // SAFETY: within a mapped stack.
            may_read.then(|| unsafe { (address as *const usize).read_volatile() })
        };
        let outcome = match made {
            Some(rule) => self.registers.step_by_rule(rule, &mut read),
            None => self.registers.step(tables.as_ref(), &mut read),
        };
        let registers = &self.registers;
        let goes_on = registers.is_exact || registers.sp() > low || !range.contains(registers.sp());
        let is_code = || {
            let pc = registers.pc();
            registers.is_exact || rules::cached(pc as u64).is_some() || modules::is_code(pc.wrapping_sub(1))
        };
        if outcome == FullStep::Caller && !(goes_on && is_code()) {
            return FullStep::Stop;
        }
        outcome
    }

    /// Unwinds out of the agent, to the frame that called it.
    fn leave_agent(&mut self, start: Start) -> bool {
        for _ in 0..OWN_FRAMES_MAX {
            if self.registers.pc() == start.pc && self.registers.sp() == start.sp {
                return true;
            }
            if self.step() != FullStep::Caller {
                return false;
            }
        }
        false
    }
}

/// A captured stack's hash, and the salt with which all its parts were made. (Another thread may
/// find a module in the meantime, which changes the salt of later stacks.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashed {
    pub(crate) path_hash: u64,
    pub(crate) salt: u64,
}

/// Compares a captured stack (outermost frame first), and its path's hash, with a full unwind, and
/// counts the result.
#[inline(never)]
pub(crate) fn compare(
    frames: &[Frame],
    hashed: Option<Hashed>,
    start: Start,
    is_main: bool,
    ranges: KnownRanges,
) {
    let mut unwind = Unwind::from_here(is_main, ranges);
    let mut is_equal = unwind.leave_agent(start);
    let mut left = frames;
    while is_equal {
        let Some((innermost, rest)) = left.split_last() else {
            is_equal = false;
            break;
        };
        is_equal = innermost.pc == unwind.registers.pc();
        left = rest;
        if unwind.step() != FullStep::Caller {
            is_equal &= left.is_empty();
            break;
        }
    }
    is_equal &= hashed.is_none_or(|Hashed { path_hash, salt }| {
        let with =
            |hash, (depth, frame): (usize, &Frame)| tree::path_hash(hash, depth, frame.pc as u64, salt);
        path_hash == frames.iter().enumerate().fold(tree::ROOT_HASH, with)
    });
    AGENT.count(|slot| &slot.verify_count);
    if !is_equal {
        AGENT.count(|slot| &slot.verify_mismatch_count);
    }
}

/// Returns the caller's (pc, sp, bp, is exact) of the frame that returns to `pc` with stack pointer
/// `sp`, by a full unwind from here.
#[cold]
#[inline(never)]
pub(crate) fn slow_step(
    pc: usize,
    sp: usize,
    is_main: bool,
    ranges: KnownRanges,
) -> Option<(usize, usize, usize, bool)> {
    let mut unwind = Unwind::from_here(is_main, ranges);
    for _ in 0..FRESH_FRAMES_MAX {
        let is_there = unwind.registers.pc() == pc && unwind.registers.sp() == sp;
        if unwind.step() != FullStep::Caller {
            return None;
        }
        let registers = &unwind.registers;
        if is_there {
            return Some((registers.pc(), registers.sp(), registers.bp(), registers.is_exact));
        }
    }
    None
}
