//! Entry points that an allocator brings of its own. (Built next.)

/// Looks for allocators that replace the C library's.
pub(crate) fn start() {}
