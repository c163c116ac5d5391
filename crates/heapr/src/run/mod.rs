//! Parts of `heapr run`.

pub(crate) mod program;
pub(crate) mod summary;
