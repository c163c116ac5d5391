//! The loaded modules: each is found at the first unwind through it, announced to the recorder, and
//! forgotten at dlclose.
//!
//! With glibc 2.35 and later a module is found by `_dl_find_object`, which takes no lock and may be
//! called in a signal handler. Before that (and with musl) it is found in the loader's list.

pub(crate) mod dynamic_section;
mod file_tables;
mod found;
pub(crate) mod interpreters;
pub(crate) mod java_code;
pub(crate) mod java_layout;
mod java_tables;
pub(crate) mod link_map;
pub(crate) mod mapped_path;
pub(crate) mod memory_map;
pub(crate) mod program_break;
pub(crate) mod registered_frames;
pub(crate) mod rules;
mod run_time_code;
mod table;

use crate::arch::Rule;
use crate::unwind::{UnwindTables, rule_for as read_rule};

use found::{Found, find};
use table::{announce, known};

pub(crate) use table::{Module, ON_NEW, announce_all, forget_code, forget_unloaded, salt};

/// Receiver of module records for the recorder.
pub(crate) trait ModuleSink {
    /// Writes one record into the event stream.
    fn module(&mut self, module: &Module, flags: u64);
}

/// Finds the loader's function and maps the table of modules.
pub(crate) fn start() {
    start_with(link_map::find_anywhere(b"_dl_find_object"));
}

/// Starts like [`start`], with the address of the loader's function; 0 if the loader has no such
/// function.
pub(crate) fn start_with(find_object_avma: usize) {
    found::find_by(find_object_avma);
    table::start();
}

/// Returns the rule for the frame that returns to `return_address`; finds and announces its module
/// if it is new. Returns `None` if there is no code at the address.
pub(crate) fn rule_for(return_address: u64, sink: &mut dyn ModuleSink) -> Option<Rule> {
    let lookup_avma = return_address.wrapping_sub(1) as usize;
    let found = find(lookup_avma);
    if !is_code_of(found.as_ref(), lookup_avma) {
        return None;
    }
    if let Some(found) = &found
        && known(found).is_none()
    {
        announce(found, sink);
    }
    // Code of a run-time compiler that registers no tables can be unwound by frame pointers only.
    let tables = tables_of(found.as_ref(), lookup_avma);
    Some(match tables {
        Some(tables) => read_rule(&tables, lookup_avma),
        None => rule_of_made_code(return_address as usize).unwrap_or(Rule::FRAME_POINTER),
    })
}

/// Returns the rule for the frame that returns to JIT code outside of all modules, if the code's
/// maker describes its frames.
pub(crate) fn rule_of_made_code(return_address: usize) -> Option<Rule> {
    let of_java = java_code::find(return_address).and_then(|code| code.rule());
    of_java.or_else(|| interpreters::trampoline_frame_bytes(return_address).map(Rule::plain))
}

/// True if an address lies in a loaded module.
pub(crate) fn holds(address_avma: usize) -> bool {
    find(address_avma).is_some()
}

/// True if there is code at an address: otherwise no function returns to it.
pub(crate) fn is_code(address_avma: usize) -> bool {
    is_code_of(find(address_avma).as_ref(), address_avma)
}

fn is_code_of(found: Option<&Found>, address_avma: usize) -> bool {
    match found {
        Some(found) => found.is_executable(address_avma),
        None => registered_frames::tables(address_avma).is_some() || run_time_code::is_at(address_avma),
    }
}

/// Returns the unwind tables that describe an address, or at least those of the module that holds
/// it.
pub(crate) fn unwind_tables(address_avma: usize) -> Option<UnwindTables> {
    tables_of(find(address_avma).as_ref(), address_avma)
}

fn tables_of(found: Option<&Found>, address_avma: usize) -> Option<UnwindTables> {
    let Some(found) = found else { return registered_frames::tables(address_avma) };
    let mapped = found.unwind_tables();
    if mapped.is_some_and(|tables| tables.describes(address_avma)) {
        return mapped;
    }
    let of_file = known(found).and_then(|module| module.file_tables(found));
    of_file.and_then(|tables| tables.describing(found, address_avma)).or(mapped)
}
