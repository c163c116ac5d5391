//! Parameters of an attach.

use std::path::Path;

use crate::inside_function::InsideFunction;

/// Target, agent and settings of an attach.
#[derive(Debug, Clone, Copy)]
pub struct AttachRequest<'a> {
    /// Process id of the target in this process's namespace.
    pub pid: u32,
    /// Content of the agent's shared object.
    pub agent: &'a [u8],
    /// Descriptor, in this process, of the session's shared buffers.
    pub pool: i32,
    /// Value of the session variable for programs that the target starts; empty: such programs are
    /// not followed.
    pub session: &'a str,
    /// Path of the agent's file for such programs, if the target can see it.
    pub agent_path: Option<&'a Path>,
    /// Functions of embedded allocators, in addition to those found by the loader's names.
    pub inside: &'a [InsideFunction],
    /// Whether mappings are recorded as a heap; otherwise only the callers that map are recorded.
    pub hooks_mmap: bool,
    /// Whether allocations are sampled, so that calls are counted before they reach the agent.
    pub is_sampled: bool,
    /// Whether seccomp filters that cannot be read are assumed harmless.
    pub despite_seccomp: bool,
    /// Number of the step that fails, for tests.
    pub fail_at: Option<u32>,
}
