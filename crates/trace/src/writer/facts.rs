//! Facts about the recording beside its events: processes, threads, modules, markers, memory,
//! losses.

use std::io::Write;

use super::TraceWriter;
use crate::chunk::ChunkKind;
use crate::error::Result;
use crate::{
    HeapName, LanguageFunction, Loss, LossEntry, Mapping, Marker, MemoryAccount, MemoryReading, Module,
    ModuleIndex, Notice, Process, ProcessIndex, ResidentSample, RssSample, SamplingPeriod, Session,
    Statistic, System, Thread, ThreadIndex,
};

impl<W: Write> TraceWriter<W> {
    /// Writes the machine.
    ///
    /// # Errors
    /// Writing to the sink fails. All methods below have this error.
    pub fn set_system(&mut self, system: &System) -> Result<()> {
        self.single(ChunkKind::System, system)
    }

    /// Writes the session.
    pub fn set_session(&mut self, session: &Session) -> Result<()> {
        self.single(ChunkKind::Session, session)
    }

    /// Adds a process image.
    pub fn add_process(&mut self, process: Process) -> Result<ProcessIndex> {
        let index = ProcessIndex(self.process_count);
        self.process_count += 1;
        self.processes.add(&(index, process));
        Ok(index)
    }

    /// Replaces the entry of a process image.
    pub fn update_process(&mut self, index: ProcessIndex, process: &Process) -> Result<()> {
        self.processes.add(&(index, process.clone()));
        Ok(())
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, thread: Thread) -> Result<ThreadIndex> {
        let index = ThreadIndex(self.thread_count);
        self.thread_count += 1;
        self.thread_processes.push(thread.process);
        self.threads.add(&(index, thread));
        Ok(index)
    }

    /// Replaces the entry of a thread.
    pub fn update_thread(&mut self, index: ThreadIndex, thread: &Thread) -> Result<()> {
        self.threads.add(&(index, thread.clone()));
        Ok(())
    }

    /// Adds a module, or finds the number of an equal one.
    pub fn add_module(&mut self, module: Module) -> Result<ModuleIndex> {
        let next = ModuleIndex(self.module_numbers.len() as u32);
        if let Some(&known) = self.module_numbers.get(&module) {
            return Ok(known);
        }
        self.modules.add(&module);
        self.module_numbers.insert(module, next);
        Ok(next)
    }

    /// Adds a mapping; returns its number.
    pub fn add_mapping(&mut self, mapping: Mapping) -> Result<u32> {
        let number = self.mapping_table.len() as u32;
        self.mappings.add(&(number, mapping));
        self.mapping_table.push(mapping);
        Ok(number)
    }

    /// Ends a mapping.
    pub fn unload_mapping(&mut self, number: u32, time_ns: u64) -> Result<()> {
        if let Some(mapping) = self.mapping_table.get_mut(number as usize) {
            mapping.unloaded_ns = time_ns;
            self.mappings.add(&(number, *mapping));
        }
        Ok(())
    }

    /// Adds a marker.
    pub fn marker(&mut self, marker: &Marker) -> Result<()> {
        self.markers.add(marker);
        Ok(())
    }

    /// Adds a sample of the resident set.
    pub fn rss_sample(&mut self, sample: RssSample) -> Result<()> {
        self.rss_samples.add(&sample);
        Ok(())
    }

    /// Adds a sample of the resident set by kind of page.
    pub fn resident_sample(&mut self, sample: ResidentSample) -> Result<()> {
        self.resident_samples.add(&sample);
        Ok(())
    }

    /// Adds an account of a process's own memory.
    pub fn memory_account(&mut self, account: &MemoryAccount) -> Result<()> {
        self.memory_accounts.add(account);
        Ok(())
    }

    /// Adds a reading of a process's mappings.
    pub fn memory_reading(&mut self, reading: &MemoryReading) -> Result<()> {
        self.memory_readings.add(reading);
        Ok(())
    }

    /// The path of a mapping's module.
    pub fn module_path(&self, mapping_number: u32) -> Option<&str> {
        let module = self.mapping_table.get(mapping_number as usize)?.module;
        let found = self.module_numbers.iter().find(|(_, number)| **number == module);
        found.map(|(module, _)| module.path.as_str())
    }

    /// Adds a loss.
    pub fn loss(
        &mut self,
        process: Option<ProcessIndex>,
        thread: Option<ThreadIndex>,
        loss: Loss,
    ) -> Result<()> {
        self.losses.add(&LossEntry { process, thread, loss });
        Ok(())
    }

    /// Adds a name of a heap that a program registers itself.
    pub fn heap_name(&mut self, name: &HeapName) -> Result<()> {
        self.heap_names.add(name);
        Ok(())
    }

    /// Adds a remark about the recording of a process.
    pub fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.notices.add(notice);
        Ok(())
    }

    /// Adds the sampling of a process from a time on; only for a trace begun by
    /// [`TraceWriter::new_sampled`].
    pub fn sampling(&mut self, period: SamplingPeriod) -> Result<()> {
        self.is_sampled |= period.mean_bytes != SamplingPeriod::ALL_BYTES;
        self.sampling.add(&period);
        Ok(())
    }

    /// Adds a function that frames of a language refer to. Replaces one of the same process,
    /// language and number.
    pub fn function(&mut self, function: &LanguageFunction) -> Result<()> {
        self.functions.add(function);
        Ok(())
    }

    /// Adds a number about the recording.
    pub fn statistic(&mut self, name: &str, value: u64) -> Result<()> {
        self.statistics.add(&Statistic { name: name.to_owned(), value });
        Ok(())
    }
}
