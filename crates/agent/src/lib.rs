//! The part of heapr that runs inside the target: hooks, stack capture, writing into the shared buffers.
//!
//! It is a guest in somebody else's house: it allocates nothing from the program's heap, takes no lock that another
//! thread may hold while it waits, leaves errno alone, makes no system call on the common path, and when it cannot go
//! on it disables itself, says why in the shared page, and lets the program run on at full speed.
//!
//! As a library of the workspace it exports no C symbol; the shared object is built with the feature `cdylib`.
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

mod any_frames;
mod bounds;
mod claims;
mod control_block;
mod event_clock;
mod events;
mod exec;
mod flagged;
mod foreign;
mod heaps;
mod hooks;
mod injected;
mod kept_stack;
mod known_rules;
mod link_map;
mod mapping_hooks;
mod modules;
mod node_table;
mod path_node;
mod plain_frames;
mod process;
mod real;
mod recent_way;
mod repair;
mod rules;
mod sandbox;
mod shortcut;
mod stack;
mod start;
mod step_aside;
mod thread;
mod tree;
mod verify;
mod way;
mod way_table;
mod word_pairs;
pub mod x86_64;

#[cfg(all(feature = "cdylib", not(test)))]
mod shared_object {
    /// Runs `start::construct` when the loader has loaded the agent.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONSTRUCTOR: extern "C" fn() = crate::start::construct;

    /// No code of the agent panics (the build checks that none of core's panic machinery is linked); the language wants
    /// a handler all the same.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            core::hint::spin_loop();
        }
    }
}
