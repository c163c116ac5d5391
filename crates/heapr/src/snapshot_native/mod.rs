//! Snapshots of native heaps: taking, reading and comparing those in `.heapr` files.

pub(crate) mod find;
pub(crate) mod rule_arguments;
