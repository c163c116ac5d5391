//! What an attach is asked for.

use std::path::Path;

use crate::inside_function::InsideFunction;

/// What to attach, and how.
#[derive(Debug, Clone, Copy)]
pub struct AttachRequest<'a> {
    /// The target, as this process sees it.
    pub pid: u32,
    /// The agent's shared object.
    pub agent: &'a [u8],
    /// Descriptor, in this process, of the session's shared buffers.
    pub pool: i32,
    /// Value of the session variable for programs that the target starts; empty: they are not
    /// followed.
    pub session: &'a str,
    /// The agent's file for them, if the target can see it.
    pub agent_path: Option<&'a Path>,
    /// Functions of allocators inside of the program and its libraries, besides those that are
    /// found by the names that the loader knows.
    pub inside: &'a [InsideFunction],
    /// Mappings are a heap. Without it only who maps what is noted.
    pub hooks_mmap: bool,
    /// Some allocations are recorded for all: calls are counted where they come in.
    pub is_sampled: bool,
    /// Filters of its that cannot be read are taken to end nobody.
    pub despite_seccomp: bool,
    /// For tests: the number of the step that fails.
    pub fail_at: Option<u32>,
}
