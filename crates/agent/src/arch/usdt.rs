//! Probes that profilers outside of the process can hook: SystemTap's notes (`.note.stapsdt`). The
//! memory profiling of OpenTelemetry's eBPF profiler reads them.
//!
//! ```text
//! otel_memory:alloc   8@%rdi address   8@%rsi size   8@%rdx bytes that it stands for
//! otel_memory:free    8@%rdi address
//! ```
//! Each probe has a semaphore, which a listener raises: without a listener the probes are not
//! executed.

/// Defines a probe: its function, whose first instruction is the probe's location, its semaphore,
/// and its note.
macro_rules! probe {
    ($name:ident, $semaphore:ident, $label:literal, $arguments:literal) => {
        /// Raised while a listener is attached.
        #[unsafe(link_section = ".probes")]
        #[used]
        pub(crate) static $semaphore: core::sync::atomic::AtomicU16 = core::sync::atomic::AtomicU16::new(0);

        /// Location of the probe.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(_address: usize, _size: usize, _weighted_bytes: usize) {
            core::arch::naked_asm!(".cfi_startproc", "nop", "ret", ".cfi_endproc");
        }

        core::arch::global_asm!(
            ".pushsection .note.stapsdt,\"\",\"note\"",
            ".balign 4",
            ".4byte 992f-991f, 994f-993f, 3",
            "991: .asciz \"stapsdt\"",
            "992: .balign 4",
            "993: .8byte {place}",
            ".8byte _.stapsdt.base",
            ".8byte {semaphore}",
            ".asciz \"otel_memory\"",
            concat!(".asciz \"", $label, "\""),
            concat!(".asciz \"", $arguments, "\""),
            "994: .balign 4",
            ".popsection",
            place = sym $name,
            semaphore = sym $semaphore,
        );
    };
}

core::arch::global_asm!(
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat",
    ".weak _.stapsdt.base",
    ".hidden _.stapsdt.base",
    "_.stapsdt.base: .space 1",
    ".size _.stapsdt.base, 1",
    ".popsection",
);

probe! { alloc, ALLOC_WATCHED, "alloc", "8@%rdi 8@%rsi 8@%rdx" }
probe! { free, FREE_WATCHED, "free", "8@%rdi" }
