//! Finds programs that Go programs start. Go's runtime forks and execs by itself, so that no hook
//! sees it. A child with an environment of its own, as runc gives it, does not find the session.

use std::fs;

use heapr_proc::threads;
use heapr_trace::Notice;

use crate::recorder::Recorder;
use crate::recorder::processes::housekeeping::{UNTRACED_MAX, untraced_text};

const LOOK_NS: u64 = 50_000_000;
/// One of the variables that lead into the session: either both are passed on or neither.
const VARIABLE: &str = "HEAPR_SESSION";
const WHY: &str = "Go starts programs without the C library, and it was given an environment without the session \
                   (heapr start --pid attaches to it)";

impl Recorder {
    /// Writes notices about programs that Go programs have started and that are not recorded.
    pub(in crate::recorder) fn look_at_children_of_go(&mut self, now_ns: u64) {
        for place in 0..self.processes.len() {
            let process = &mut self.processes[place];
            let (pid, is_over) = (process.pid, process.has_ended || process.is_done);
            let Some(go) = process.go.as_mut().filter(|go| now_ns >= go.next_children_ns && !is_over) else {
                continue;
            };
            go.next_children_ns = now_ns.saturating_add(LOOK_NS);
            if go.untraced_children.len() >= UNTRACED_MAX {
                continue;
            }
            for child in children(pid) {
                let is_known = self.processes.iter().any(|known| known.pid == child && !known.has_ended);
                // The link to the executable of an ended process cannot be read.
                let Ok(executable) = heapr_proc::executable(child) else { continue };
                if is_known || heapr_proc::variable(child, VARIABLE).is_some() {
                    continue;
                }
                let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let process = &mut self.processes[place];
                let Some(go) = &mut process.go else { break };
                if go.untraced_children.contains(&name) {
                    continue;
                }
                let text = untraced_text(&name, WHY);
                go.untraced_children.push(name);
                let notice = Notice { process: process.index, time_ns: now_ns.max(self.sink.last_ns), text };
                let outcome = self.sink.writer.notice(&notice);
                self.sink.keep(outcome);
            }
        }
    }
}

/// Live children of a process; `/proc` lists them per thread.
fn children(pid: u32) -> Vec<u32> {
    let threads = threads(pid).into_iter().flatten();
    let of_thread = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let lists: Vec<String> = threads.map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|word| word.parse().ok()).collect()
}
