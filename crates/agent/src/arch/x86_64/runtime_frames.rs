//! Frames on the native stack that interpreters of language runtimes make for their functions:
//! locations of the words that are read, in bytes.

/// V8's interpreter and its JIT code: distances below the frame pointer.
pub(crate) mod v8 {
    /// The function's context, or a mark of the kind of frame.
    pub(crate) const CONTEXT_BELOW: usize = 8;
    /// The function.
    pub(crate) const FUNCTION_BELOW: usize = 16;
    /// The bytecode of an interpreted function.
    pub(crate) const INSTRUCTIONS_BELOW: usize = 32;
    /// The present instruction's offset in the bytecode.
    pub(crate) const INSTRUCTION_BELOW: usize = 40;
}

/// HotSpot's interpreter: distances below the frame pointer.
pub(crate) mod java {
    /// The method.
    pub(crate) const METHOD_BELOW: usize = 24;
    /// The address of the present instruction.
    pub(crate) const INSTRUCTION_BELOW: usize = 64;
}

/// LuaJIT's interpreter: offsets in its frame on the native stack.
pub(crate) mod luajit {
    /// The thread.
    pub(crate) const THREAD_AT: usize = 16;
    /// The address of the instruction after the present one.
    pub(crate) const SAVED_AT: usize = 24;
}

/// PHP's globals (`executor_globals`).
pub(crate) mod php {
    /// Size in bytes of 8.2's and 8.4's, by which the version is recognised.
    pub(crate) const GLOBALS_BYTES: [usize; 2] = [1800, 1984];
}
