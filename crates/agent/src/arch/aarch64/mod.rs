//! aarch64, with the calling convention AAPCS64.

pub(crate) mod all_registers_entry;
pub(crate) mod assembly;
pub(crate) mod columns;
pub(crate) mod entries;
pub(crate) mod entry;
mod equal_pairs;
mod equal_words;
pub(crate) mod go_stacks;
pub(crate) mod leaving;
pub(crate) mod light_entry;
pub(crate) mod loader_entries;
pub(crate) mod loading;
pub(crate) mod mapping_entries;
#[cfg(any(feature = "cdylib", test))]
mod memory_functions;
mod ordered_time;
mod prefetch;
mod rule;
pub(crate) mod runtime_frames;
pub(crate) mod sampling_entries;
pub(crate) mod saved_registers;
pub(crate) mod signal_return;
pub(crate) mod stack_switch;
pub(crate) mod thread_pointer;
pub(crate) mod thread_variable;
pub(crate) mod trampoline_frame;
pub(crate) mod weak_symbols;
pub(crate) mod wide_registers;

pub(crate) use equal_pairs::{AllEqual, Pair};
pub(crate) use equal_words::equal_words;
pub(crate) use ordered_time::{Late, WORD_TICKS, keep_stores_before_time, wait_for_loads};
pub(crate) use prefetch::prefetch;
pub(crate) use rule::{FRAME_RECORD_BYTES, RETURN_ADDRESS_BELOW, RETURN_ADDRESS_IN_RECORD, Rule};

/// Number of arguments of a list that the registers behind the named word hold: x1 to x7.
pub(crate) const LISTED_IN_REGISTERS: usize = 7;

/// End of the addresses of a process. (Linux gives out higher ones, of 52 bits, only on request.)
pub(crate) const ADDRESS_END: usize = 1 << 48;

/// Returns a code address without the signature that pointer authentication puts into its upper
/// bits. Signed and unsigned addresses must not be compared.
#[inline(always)]
pub(crate) fn unsigned(code_avma: usize) -> usize {
    code_avma & (ADDRESS_END - 1)
}
