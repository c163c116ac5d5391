//! Tables of facts that depend on the processor, one folder a processor.

mod aarch64;
mod x86_64;

use crate::machine_facts::Machine;

/// All processors that heapr knows.
pub(crate) const ALL: &[&Machine] = &[&aarch64::MACHINE, &x86_64::MACHINE];

/// The processor that heapr is built for.
#[cfg(target_arch = "aarch64")]
pub const HERE: Machine = aarch64::MACHINE;

#[cfg(target_arch = "aarch64")]
pub use aarch64::c_library::{
    DESCRIPTOR_BEGIN, KEY_VALUES_NEAR, KEY_VALUES_OFFSET, MUSL_DESCRIPTOR_BYTES, MUTEX_BYTES,
    STACK_BOUNDS_NEAR, STACK_END_ABOVE, THREAD_ID_OFFSET, VARIABLES_LIST_AT,
};

/// The processor that heapr is built for.
#[cfg(target_arch = "x86_64")]
pub const HERE: Machine = x86_64::MACHINE;

#[cfg(target_arch = "x86_64")]
pub use x86_64::c_library::{
    DESCRIPTOR_BEGIN, KEY_VALUES_NEAR, KEY_VALUES_OFFSET, MUSL_DESCRIPTOR_BYTES, MUTEX_BYTES,
    STACK_BOUNDS_NEAR, STACK_END_ABOVE, THREAD_ID_OFFSET, VARIABLES_LIST_AT,
};

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("no folder for this processor: docs/decisions/0028-second-processor.md has what it needs");
