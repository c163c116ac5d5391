//! Symbols that the loader has resolved for the agent if the program has them; reading one calls no
//! function.
//!
//! They are weak symbols in assembly, because the attribute for them is unstable and the language
//! assumes that an extern static exists. An injected agent lacks these symbols.

use core::arch::asm;

macro_rules! weak_symbols {
    ($($(#[$documentation:meta])* $name:ident $symbol:literal;)*) => {$(
        $(#[$documentation])*
        pub(crate) fn $name() -> usize {
            let address;
            // SAFETY: reads the entry of the agent's offset table that the loader has filled in
            // before any of the agent's code ran.
            unsafe {
                asm!(
                    concat!(".weak ", $symbol),
                    concat!("adrp {address}, :got:", $symbol),
                    concat!("ldr {address}, [{address}, :got_lo12:", $symbol, "]"),
                    address = out(reg) address,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            address
        }
    )*};
}

weak_symbols! {
    /// Start function of ThreadSanitizer, in any module; 0: no module had it when the program was
    /// loaded.
    thread_sanitizer "__tsan_init";
    /// Start function of AddressSanitizer; 0 as above.
    address_sanitizer "__asan_init";
    /// Start function of MemorySanitizer; 0 as above.
    memory_sanitizer "__msan_init";
    /// Start function of HWAddressSanitizer; 0 as above.
    hardware_address_sanitizer "__hwasan_init";
    /// glibc's `_r_debug`, which debuggers read; 0: another C library.
    loader_debug "_r_debug";
}
