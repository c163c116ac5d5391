//! Finds processes that exec by a direct system call, which no hook sees. If the environment does
//! not lead to the session, the new program does not register.
//!
//! The kernel shows the exec: the first stack begins at another address in each image, and at the
//! same one in a forked child. A program that lives only between two checks is missed.

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use heapr_proc::Stat;
use heapr_trace::Notice;
use heapr_wire::{FLAG_NO_FOLLOW, ProcessSlot};

use crate::recorder::Recorder;
use crate::recorder::facts::process_facts;
use crate::recorder::state::process_state::ProcessState;

/// Longest time until a program that finds the session registers: its loader runs before.
const REGISTERS_NS: u64 = 5_000_000_000;
/// One of the variables that lead into the session: either both are passed on or neither.
const VARIABLE: &str = "HEAPR_SESSION";
/// Variable by which a program is not to be recorded; any value but 0.
const DISABLE_VARIABLE: &str = "HEAPR_DISABLE";

/// Returns the image of a process that has just registered. `parents`: image of the process that it
/// was forked from, whose stack it has.
pub(crate) fn first_image(process: &ProcessState, parents: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let image = process_facts::image(process.pid)?;
    match parents {
        Some([_, stack]) => Some([image[0], stack]),
        // The image that registered has been replaced already, and is unknown.
        None => Some(image).filter(|_| !process.has_gone_on),
    }
}

/// Whether a process runs another program than the one that registered. An ended process has no
/// stack, so this is false. A program that the kernel is still loading has no environment yet
/// (`env_end` of proc(5) is 0).
fn has_other_image(process: &ProcessState) -> bool {
    let Some([first_start, first_stack]) = process.first_image else { return false };
    let Some(stat) = Stat::of_process(process.pid) else { return false };
    let [start, stack, environment_end] = [22, 28, 51].map(|field| stat.number(field).unwrap_or(0));
    first_start == start && first_stack != stack && first_stack != 0 && stack != 0 && environment_end != 0
}

/// Whether the agent has reported the exec.
fn was_seen(slot: &ProcessSlot) -> bool {
    slot.untraced_exec.load(Acquire) != 0 || slot.exec_held.load(Relaxed) != 0
}

impl Recorder {
    /// Checks whether a process has execed unseen, and writes a notice. `true`: it has, and its old
    /// heap is gone.
    pub(crate) fn look_for_unseen_exec(&mut self, place: usize, now_ns: u64) -> bool {
        let is_followed = self.pool.control().flags.load(Relaxed) & FLAG_NO_FOLLOW == 0;
        let process = &mut self.processes[place];
        if !is_followed || process.is_replaced || process.is_let_go || !has_other_image(process) {
            process.other_image_ns = None;
            return false;
        }
        let slot = self.pool.process_slot(process.slot);
        if slot.is_none_or(|slot| slot.generation.load(Relaxed) != process.generation || was_seen(slot)) {
            return false;
        }
        if heapr_proc::variable(process.pid, DISABLE_VARIABLE).is_some_and(|value| value != "0") {
            process.other_image_ns = None;
            return false;
        }
        let is_new = process.other_image_ns.is_none();
        let since_ns = *process.other_image_ns.get_or_insert(now_ns);
        let name = process_facts::executable(process.pid);
        name.clone_into(&mut process.other_image_name);
        // A program seen for the first time may have registered just now.
        let finds_session = heapr_proc::variable(process.pid, VARIABLE).is_some();
        if is_new || finds_session && now_ns.saturating_sub(since_ns) < REGISTERS_NS {
            return false;
        }
        // The environment of a process that ends meanwhile is empty.
        if !has_other_image(&self.processes[place]) {
            return false;
        }
        self.note_unseen_exec(place, now_ns);
        true
    }

    /// Writes a notice about an unseen exec, if a check has found one.
    pub(crate) fn note_unseen_exec(&mut self, place: usize, now_ns: u64) {
        let process = &mut self.processes[place];
        let Some(since_ns) = process.other_image_ns.take().filter(|_| !process.is_replaced) else { return };
        let path = Path::new(&process.other_image_name);
        let name = path.file_name().map_or("another program".into(), |name| name.to_string_lossy());
        let text = format!(
            "it went on to {name} by a system call that no hook sees: what that allocates is not recorded (heapr \
             start --pid attaches to it)"
        );
        let notice = Notice { process: process.index, time_ns: now_ns.max(self.sink.last_ns), text };
        let is_end_known = std::mem::replace(&mut process.is_end_counted, true);
        process.has_ended = true;
        process.is_replaced = true;
        if let Some(entry) = &mut process.entry {
            entry.end_ns.get_or_insert(since_ns);
        }
        let index = process.index;
        let outcome = self.sink.writer.notice(&notice);
        self.sink.keep(outcome);
        if !is_end_known {
            self.sink.add_end(since_ns, index);
        }
    }
}
