//! What the loader has looked up for the agent if the program has it: known without a call of
//! anything.
//!
//! Weak symbols in assembly, as the attribute for them is unstable and the language takes an extern
//! static to be there. An agent that was injected has none of them.

use core::arch::asm;

macro_rules! weak_symbols {
    ($($(#[$documentation:meta])* $name:ident $symbol:literal;)*) => {$(
        $(#[$documentation])*
        pub(crate) fn $name() -> usize {
            let address;
            // SAFETY: reads the entry of the agent's offset table that the loader has filled in
            // before anything of the agent ran.
            unsafe {
                asm!(
                    concat!(".weak ", $symbol),
                    concat!("mov {address}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                    address = out(reg) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            address
        }
    )*};
}

weak_symbols! {
    /// Where ThreadSanitizer starts, from whatever module; 0: none was there when the program was
    /// loaded.
    thread_sanitizer "__tsan_init";
    /// As above, AddressSanitizer.
    address_sanitizer "__asan_init";
    /// As above, MemorySanitizer.
    memory_sanitizer "__msan_init";
    /// As above, HWAddressSanitizer.
    hardware_address_sanitizer "__hwasan_init";
    /// glibc's `_r_debug`, which debuggers read; 0: another C library.
    loader_debug "_r_debug";
}
