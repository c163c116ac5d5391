//! Attach to a running process: stop it, load the agent, hook its allocator, resume it; and the
//! reverse.
//!
//! This is the only crate of heapr that traces processes. The target's own loader and allocator are
//! not used. The crate thus calls no function whose lock a stopped thread may hold. It needs no
//! file visible in the target's namespaces, and leaves no entries in its lists.
//!
//! The crate kills no process. This process may be killed at any moment; `remote` describes how a
//! borrowed thread then resumes its own work.

mod address_room;
mod agent_place;
mod allocator_code;
mod arch;
mod areas;
mod attach;
mod attach_request;
mod broken_call;
mod change;
mod command_words;
mod copy;
mod counting;
mod detach;
mod elf_in_memory;
mod error;
mod exec_argument;
mod exec_stop;
mod exec_watch;
mod exit_status;
mod gate;
mod hold;
mod image;
mod inside;
mod inside_function;
mod install;
mod large_blocks;
mod loaded_agent;
mod made_to_die;
mod mapping_flags;
mod memory;
mod modules;
mod orphan;
mod own_memory;
mod own_thread;
mod pass_descriptor;
mod plan;
mod processor_clock;
mod program_start;
mod protection;
mod ptrace;
mod ptrace_request;
mod record;
mod recorder_life;
mod remote;
mod removal;
mod report;
mod restless;
mod return_chain;
mod run_alone;
mod seccomp;
mod seizing;
mod standstill;
mod start_block;
mod static_symbols;
mod stop;
mod stopped_process;
mod symbol_hashes;
mod take_away;
mod target;
mod thread_modules;
mod thread_place;
mod timed_look;
mod unwind_index;
mod urgency;
mod written_pages;

pub use agent_place::agent_memory;
pub use attach::{Standstill, attach, attach_held};
pub use attach_request::AttachRequest;
pub use counting::count_down;
pub use detach::detach;
pub use error::{Error, Result};
pub use exec_argument::{ExecArgument, exec_argument};
pub use exec_stop::{HeldExec, Preparation};
pub use exec_watch::{ExecWatch, Started};
pub use exit_status::exit_status;
pub use hold::{HeldProcess, HeldThread, HoldParts, HoldReport, HoldRequest, Look, ReadFrom, hold};
pub use inside::{InsideReport, LoadedModule, hook_inside, loaded_modules};
pub use inside_function::InsideFunction;
pub use large_blocks::keep_large_blocks_in;
#[doc(hidden)]
pub use made_to_die::die_at;
pub use memory::{ProcessMemory, TargetMemory, Unreachable};
pub use own_memory::{give_back_code, give_back_memory};
pub use program_start::{
    WaitingChild, file_bytes_max, has_small_stack, leave_given_limits, start_as_given, wait_before_exec,
    with_given_limits,
};
pub use protection::denies_write_execute;
pub use report::{AttachReport, DetachReport, PauseParts};
pub use run_alone::{RunsAlone, program_starts};
pub use standstill::{StillProcess, stand_still};
pub use stopped_process::StoppedProcess;
pub use thread_modules::{ThreadModule, thread_modules};
pub use timed_look::LetGo;
