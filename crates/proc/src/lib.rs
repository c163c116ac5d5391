//! Facts about processes and the machine from `/proc`, and about ended processes from core files.
//!
//! The crate reads and parses, and makes no decisions. Its input is untrusted: invalid lines are
//! skipped.
#![forbid(unsafe_code)]

mod control_groups;
mod core_file;
mod core_notes;
mod fields;
mod first_thread;
mod group_folder;
mod group_memory;
mod group_number;
mod ids;
mod kernel_words;
pub mod machine;
mod mapping_flags;
pub mod mappings;
pub mod mounts;
mod page_map;
mod page_size;
mod process;
pub mod ranges;
mod resident;
mod served_memory;
mod sleeping_call;
pub mod smaps;
mod stat;
mod whole_file;

pub use control_groups::{GroupLimit, is_frozen, memory_limits};
pub use core_file::{CoreError, CoreFile, LeftOut};
pub use core_notes::CoreThread;
pub use fields::Fields;
pub use first_thread::{folder, is_alive, telling_thread};
pub use group_folder::GroupFolder;
pub use group_memory::{GroupMemory, GroupParts, group_memory};
pub use group_number::GroupNumber;
pub use ids::{own_pid, pids, stack_pointers, threads};
pub use kernel_words::kernel_words;
pub use mapping_flags::{has_mapping_with_flag, not_as_it_is_in_forks};
pub use mappings::Mapping;
pub use page_map::{PageMap, PageState};
pub use page_size::page_bytes;
pub use process::{
    command_line, command_words, executable, inner_pid, namespace, resident_bytes, soft_limit, thread_name,
    variable,
};
pub use resident::ResidentCounters;
pub use served_memory::ServedMemory;
pub use sleeping_call::{LastRun, SleepingCall};
pub use stat::{Stat, parent, start_ticks, wait_status_of_zombie};
