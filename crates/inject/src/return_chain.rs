//! Chain of return addresses of a waiting thread, from its innermost call to its first function.
//!
//! ```text
//! pc of the thread -> rule in the module's tables -> caller's registers -> its rule -> ...
//!                  -> a function without a caller
//! ```
//! All other words on its stack are left from finished calls. Only a complete chain counts: code
//! without tables (of a JIT compiler, or heapr's own) ends it early.

use std::collections::HashMap;

use heapr_known::machine::HERE;
use heapr_proc::{Mapping, mappings};
use heapr_unwind::{StoppedFrame, UnwindRule};

use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::stop::StoppedThread;
use crate::unwind_index::UnwindIndex;

/// Largest number of frames of a waiting thread; a damaged stack may lead in a circle.
const FRAMES_MAX: usize = 4096;

/// Unwinder for threads of one process, whose modules must stay loaded meanwhile.
#[derive(Debug)]
pub(crate) struct ReturnChains<'a> {
    memory: &'a ProcessMemory,
    /// Unwind indexes of the modules, by the address of their file headers.
    indexes: HashMap<u64, Option<UnwindIndex>>,
    /// Rules by code address: waiting threads share a few addresses.
    rules: HashMap<u64, Option<UnwindRule>>,
}

impl<'a> ReturnChains<'a> {
    pub(crate) fn new(memory: &'a ProcessMemory) -> Self {
        Self { memory, indexes: HashMap::new(), rules: HashMap::new() }
    }

    /// Discards all cached data: the process has run, and may have loaded other modules.
    pub(crate) fn forget(&mut self) {
        self.indexes.clear();
        self.rules.clear();
    }

    /// True if a thread is certainly in no call from these ranges. That is uncertain for a thread
    /// outside of a system call, because tables are less exact at a function's first and last
    /// instructions.
    pub(crate) fn lead_around(
        &mut self,
        ranges: &[(u64, u64)],
        mappings: &[Mapping],
        thread: &StoppedThread,
    ) -> bool {
        thread.registers.system_call().is_some()
            && self.of_thread(mappings, thread).is_some_and(|chain| {
                !chain.iter().any(|&pc_avma| crate::allocator_code::is_in(ranges, pc_avma))
            })
    }

    /// Return addresses of the thread's frames, from the innermost; `None` if the tables do not
    /// cover all frames.
    fn of_thread(&mut self, mappings: &[Mapping], thread: &StoppedThread) -> Option<Vec<u64>> {
        let memory = self.memory;
        let word_at = |avma: u64| memory.read_u64(avma).ok();
        let mut frame = StoppedFrame::innermost(&HERE, &thread.registers.words());
        let mut chain = Vec::new();
        while chain.len() < FRAMES_MAX {
            let Some(pc_avma) = frame.pc_avma(&HERE) else { return Some(chain) };
            chain.push(pc_avma);
            frame = match frame.interrupted(&HERE, &word_at) {
                Some(interrupted) => interrupted,
                None => {
                    let rule = self.rule(mappings, frame.lookup_avma(&HERE)?)?;
                    frame.caller(&HERE, rule, &word_at)?
                }
            };
        }
        None
    }

    fn rule(&mut self, mappings: &[Mapping], avma: u64) -> Option<&UnwindRule> {
        let Self { memory, indexes, rules } = self;
        let rule = rules.entry(avma).or_insert_with(|| {
            let header_avma = header_of(mappings, avma)?;
            let index =
                indexes.entry(header_avma).or_insert_with(|| UnwindIndex::of_module(*memory, header_avma));
            index.as_ref()?.rule(*memory, avma)
        });
        rule.as_ref()
    }
}

/// Address of the header of the file that contains code at an address.
fn header_of(mappings: &[Mapping], avma: u64) -> Option<u64> {
    let code = mappings::find(mappings, avma).filter(|code| code.is_executable)?;
    let is_begin = |mapping: &&Mapping| {
        mapping.file_off == 0 && mapping.inode == code.inode && mapping.name == code.name
    };
    if code.inode == 0 {
        // The vdso is the only module without a file.
        return (code.name == "[vdso]").then_some(code.start_avma);
    }
    let before = mappings.iter().take_while(|mapping| mapping.start_avma <= avma);
    Some(before.filter(is_begin).last()?.start_avma)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use heapr_testkit::wait_until;

    use super::*;
    use crate::stop::{DETACH_STOP_LIMIT, Stopped};

    #[test]
    fn a_thread_that_waits_has_a_chain_to_its_first_function() {
        let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let chain = wait_until("it waits in a system call", || {
            crate::own_thread::in_own_thread(|| {
                let memory = ProcessMemory::open(pid).unwrap();
                let stopped = Stopped::stop(pid, None, DETACH_STOP_LIMIT).unwrap().ok()?;
                let mappings = heapr_proc::mappings::read(pid).unwrap();
                let thread = stopped.threads[0];
                let mut chains = ReturnChains::new(&memory);
                let chain = chains.of_thread(&mappings, &thread);
                let chain =
                    chain.filter(|_| thread.registers.system_call() == Some(libc::SYS_clock_nanosleep))?;
                let is_program = |&pc: &u64| {
                    mappings::find(&mappings, pc).is_some_and(|code| code.name.ends_with("/sleep"))
                };
                assert!(chain.iter().any(is_program), "{chain:x?}");
                let all = [(0, u64::MAX)];
                assert!(!chains.lead_around(&all, &mappings, &thread));
                assert!(chains.lead_around(&[(8, 16)], &mappings, &thread));
                // A return address that leads nowhere: the chain is unknown.
                let mut lost = thread.registers;
                lost.set_sp(8);
                assert!(!chains.lead_around(
                    &[(8, 16)],
                    &mappings,
                    &StoppedThread { registers: lost, ..thread }
                ));
                let running = thread.registers.going_to(thread.registers.pc(), thread.registers.sp());
                let running = StoppedThread { registers: running, ..thread };
                assert!(!chains.lead_around(&[(8, 16)], &mappings, &running));
                Some(chain)
            })
        });
        let _ = child.kill();
        let _ = child.wait();
        assert!(chain.len() > 2, "{chain:x?}");
    }
}
