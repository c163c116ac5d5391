//! What is told of the recording beside its events: processes, threads, modules, marks, memory,
//! losses.

use std::io::Write;

use super::TraceWriter;
use crate::chunk::ChunkKind;
use crate::error::Result;
use crate::{
    HeapName, LanguageFunction, Loss, LossEntry, Mapping, Marker, MemoryAccount, Module, ModuleIndex, Notice,
    Process, ProcessIndex, ResidentSample, RssSample, SamplingPeriod, Session, Statistic, System, Thread,
    ThreadIndex,
};

impl<W: Write> TraceWriter<W> {
    /// Writes the machine.
    ///
    /// # Errors
    /// The sink's; so with all methods below.
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

    /// Replaces what is known of a process image.
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

    /// Replaces what is known of a thread.
    pub fn update_thread(&mut self, index: ThreadIndex, thread: &Thread) -> Result<()> {
        self.threads.add(&(index, thread.clone()));
        Ok(())
    }

    /// Adds a module, or finds it among those added.
    pub fn add_module(&mut self, module: Module) -> Result<ModuleIndex> {
        let next = ModuleIndex(self.module_numbers.len() as u32);
        if let Some(&known) = self.module_numbers.get(&module) {
            return Ok(known);
        }
        self.modules.add(&module);
        self.module_numbers.insert(module, next);
        Ok(next)
    }

    /// Adds a mapping; gives its number.
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

    /// Adds a sample of what the resident set is.
    pub fn resident_sample(&mut self, sample: ResidentSample) -> Result<()> {
        self.resident_samples.add(&sample);
        Ok(())
    }

    /// Adds what a process's own memory was.
    pub fn memory_account(&mut self, account: &MemoryAccount) -> Result<()> {
        self.memory_accounts.add(account);
        Ok(())
    }

    /// The path of a module that a mapping is of.
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

    /// Adds a name of a program's own heap.
    pub fn heap_name(&mut self, name: &HeapName) -> Result<()> {
        self.heap_names.add(name);
        Ok(())
    }

    /// Adds what is to be known of the recording of a process.
    pub fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.notices.add(notice);
        Ok(())
    }

    /// Adds how a process is sampled from a time on; only to a trace begun by
    /// [`TraceWriter::new_sampled`].
    pub fn sampling(&mut self, period: SamplingPeriod) -> Result<()> {
        self.sampling.add(&period);
        Ok(())
    }

    /// Adds a function that frames of a language name. One with the same process, language and
    /// number takes its place.
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
