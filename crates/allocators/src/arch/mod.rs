//! Branches in the code of processors.

pub(crate) mod aarch64;
