//! The part of heapr that runs inside the target: hooks, stack capture, writing into the shared
//! buffers.
//!
//! The agent is a guest in the target. It allocates nothing from the program's heap, leaves errno
//! alone and makes no system call on the common path. It takes no lock that another thread may hold
//! while it waits. If it cannot continue, it disables itself, states the reason in the shared page,
//! and the program runs on at full speed.
//!
//! As a library of the workspace the crate exports no C symbol; the shared object is built with the
//! feature `cdylib`.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]
#![cfg_attr(
    not(all(feature = "cdylib", not(test))),
    allow(dead_code, reason = "without the trampolines nothing calls the hooks")
)]
#![allow(clippy::missing_safety_doc, reason = "the hooks' contracts are the C functions'")]

mod arch;
mod frames;
mod hooks;
mod languages;
mod modules;
mod process;
mod record;
mod stack;
mod state;
mod tree;
mod unwind;

#[cfg(all(feature = "cdylib", not(test)))]
mod shared_object {
    /// Runs `start::construct` when the loader has loaded the agent.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = crate::hooks::start::construct;

    /// Runs `last_facts::note` when the program ends by `exit`.
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static DESTRUCTOR: extern "C" fn() = crate::hooks::last_facts::note;

    /// Runs when the program ends by `exit`, too. Destructors run in reverse order: this one before
    /// [`DESTRUCTOR`].
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static LAST_LOOK: extern "C" fn() = crate::process::exit::wait_to_be_seen;

    /// Required by the language. No code of the agent panics: the build checks that none of core's
    /// panic machinery is linked.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            core::hint::spin_loop();
        }
    }
}
