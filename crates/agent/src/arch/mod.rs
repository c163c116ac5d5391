//! Code that depends on the processor: entry points in assembly, registers, the thread pointer, the
//! shape of frames and of the code around them. It imports no other module of the agent.
//!
//! Each processor has a folder with the same names, which say what is done. The rest of the agent
//! uses them from here. `docs/decisions/0028-second-processor.md` lists what a second folder needs.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub(crate) mod argument_list;
mod packed_rule;
pub(crate) mod usdt;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

pub(crate) use packed_rule::{Base, Step};

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("no folder for this processor: docs/decisions/0028-second-processor.md has what it needs");

#[cfg(test)]
mod tests {
    use super::thread_pointer::{is_handle_of, thread_pointer};

    #[test]
    fn the_handle_of_a_thread_is_known_as_its_own() {
        unsafe extern "C" {
            safe fn pthread_self() -> usize;
        }
        let own = (pthread_self(), thread_pointer());
        let other = std::thread::spawn(|| (pthread_self(), thread_pointer())).join().unwrap();
        assert!(is_handle_of(own.0, own.1) && is_handle_of(other.0, other.1));
        assert!(!is_handle_of(own.0, other.1) && !is_handle_of(other.0, own.1) && !is_handle_of(0, own.1));
    }
}
