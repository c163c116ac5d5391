//! Transfer of the shared buffers to the agent, and its start.

use heapr_wire::{
    AGENT_PATH_BYTES_MAX, ATTACH_DONE, ATTACH_REFUSED, AttachParameters, SESSION_VALUE_BYTES_MAX,
};

use crate::arch::stub;
use crate::error::{Error, Result};
use crate::memory::TargetMemory as _;
use crate::pass_descriptor;
use crate::record::Record;
use crate::remote::Borrowed;
use crate::report::AttachReport;

impl super::Install<'_> {
    pub(super) fn start_agent(
        &mut self,
        thread: &mut Borrowed<'_>,
        record: &mut Record,
        report: &mut AttachReport,
    ) -> Result<()> {
        let pid = self.request.pid;
        let memory_error = |source| Error::Memory { pid, source };
        let parameters_avma = record.scratch_avma + 512;
        let parameters = self.parameters(record);
        self.write(parameters_avma, &parameters)?;
        let attach = self.plan.image.word(self.plan.injection + 16)?;
        let call = |part: u64, thread: &mut Borrowed<'_>| {
            let stub_avma = record.stub_avma + part;
            thread.call_function(stub_avma, record.scratch_avma, attach, [parameters_avma, 0, 0])
        };
        let started = pass_descriptor::pass(pid, self.memory, thread, record, self.request.pool)
            .and_then(|()| self.step())
            .and_then(|()| call(stub::CALL_WITH_DESCRIPTOR, thread));
        if let Err(error) = started {
            // The process may have ended.
            let _ = call(stub::CLOSE, thread);
            thread.place_frame(record.stack_top_avma)?;
            return Err(error);
        }
        thread.place_frame(record.stack_top_avma)?;
        let answers = parameters_avma + std::mem::offset_of!(AttachParameters, outcome) as u64;
        let answer = |number: u64| self.memory.read_u32(answers + number * 4).map_err(memory_error);
        match answer(0)? {
            ATTACH_DONE => {}
            outcome => return Err(Error::AgentRefused { pid, reason: outcome.wrapping_sub(ATTACH_REFUSED) }),
        }
        report.process_slot = answer(1)?;
        report.process_generation = answer(2)?;
        report.inner_pid = answer(3)?;
        record.process_slot = u64::from(report.process_slot);
        record.process_generation = u64::from(report.process_generation);
        self.step()
    }

    /// Parameters of the agent; the stub adds the descriptor.
    fn parameters(&self, record: &Record) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<AttachParameters>()];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(4, &(record.end_key as u32).to_le_bytes());
        put(8, &self.plan.set_specific_avma.to_le_bytes());
        put(16, &self.plan.find_object_avma.to_le_bytes());
        put(24, &self.plan.stack_end_avma.to_le_bytes());
        let nests = u32::from(self.plan.calls_nest());
        put(std::mem::offset_of!(AttachParameters, nests), &nests.to_le_bytes());
        let session = self.request.session.as_bytes();
        let path =
            self.request.agent_path.map(|path| path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        if session.len() < SESSION_VALUE_BYTES_MAX && path.len() < AGENT_PATH_BYTES_MAX {
            put(std::mem::offset_of!(AttachParameters, session), session);
            put(std::mem::offset_of!(AttachParameters, session_bytes), &(session.len() as u64).to_le_bytes());
            put(std::mem::offset_of!(AttachParameters, agent_path), path);
        }
        bytes
    }
}
