//! Code that depends on the processor: registers, the frame by which a thread returns, prologues
//! and trampoline areas.

mod all_registers_countdown;
mod basic_functions;
mod countdown;
mod island;
mod jumps;
mod prologue;
mod registers;
mod return_frame;

pub(crate) use all_registers_countdown::{AllRegistersCountdown, Place, Sampling};
pub(crate) use basic_functions::{BASIC_BYTES, ProgramHeaders, basic_functions};
pub(crate) use countdown::{Countdown, Counted};
pub(crate) use island::{
    COUNTING_BYTES, GATE_AROUND, GATE_CLOSED, GATE_OFFSET, GATE_OPEN, Island, Landing, OPENING_BYTES,
    WAITED_OFFSET, Way, counting_at, island_of, record_of, waiting_range,
};
pub(crate) use jumps::may_jump_to;
pub(crate) use prologue::{Prologue, calls_one_of, entry_of, jump};
pub(crate) use registers::{
    DWARF_RETURN_ADDRESS, DWARF_STACK_POINTER, FrameRegisters, Registers, is_kept_by_callees,
};
pub(crate) use return_frame::{FRAME_BYTES_MAX, is_return_frame, return_frame};
