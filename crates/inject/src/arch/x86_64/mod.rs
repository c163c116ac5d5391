//! x86-64.

mod addresses;
mod all_registers_countdown;
mod assembly;
mod basic_functions;
mod countdown;
mod elf;
mod gadgets;
mod interrupted;
mod island;
mod jumps;
mod loan;
pub(crate) mod old_calls;
mod opening;
mod prologue;
mod register_access;
mod registers;
mod return_frame;
pub(crate) mod stub;
mod way;

pub(crate) use super::common::*;
pub(crate) use addresses::{JUMP_DISTANCE, code_address};
pub(crate) use all_registers_countdown::{AllRegistersCountdown, Place, Sampling};
pub(crate) use basic_functions::{BASIC_BYTES, basic_functions};
pub(crate) use countdown::{Countdown, Counted};
pub(crate) use elf::{RelocationKind, has_shadow_stack};
pub(crate) use gadgets::{IS_SIGRETURN_KERNELS, SIGRETURN_CODE, SYSTEM_CALL_CODE};
pub(crate) use interrupted::interrupted_pointers;
pub(crate) use island::WAITED_OFFSET;
pub(crate) use jumps::may_jump_to;
pub(crate) use loan::is_on_loan;
pub(crate) use old_calls::IO_PGETEVENTS;
pub(crate) use opening::{counting_at, island_of, waiting_range};
pub(crate) use prologue::{JUMP_BYTES, JumpBytes, Prologue, calls_one_of, entry_of, jump};
pub(crate) use register_access::{
    IS_FIRST_ARGUMENT_LOST, IS_ONE_HIDDEN_AT_CALLS, extended_state, read_registers, set_extended_state,
    write_registers,
};
pub(crate) use registers::Registers;
pub(crate) use return_frame::{FRAME_BYTES_MAX, is_return_frame, return_frame};
pub(crate) use way::{COUNTING_BYTES, Way};
