//! The process's start environment, its end, and the programs that it is about to run.

pub(crate) mod environment;
pub(crate) mod exit;
pub(crate) mod flagged_program;
pub(crate) mod own_files;
pub(crate) mod program_file;
