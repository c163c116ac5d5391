//! Code and facts that depend on the processor: registers and how they are read, machine code for
//! the target, instructions of its functions, addresses, relocations.
//!
//! Each processor has one folder, and all folders export the same names. Other modules know no
//! register, no instruction and no number of one processor.
//! `docs/decisions/0028-second-processor.md` describes the contract of each name.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod common;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "aarch64")]
pub(crate) use self::aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("no folder for this processor: docs/decisions/0028-second-processor.md has what it needs");
