//! The small tables of the file: system, session, processes, threads, modules, mappings, markers,
//! samples, losses.
//!
//! Each table is one stream of fields in the order of the structures in `model.rs`. Numbers are
//! varints, and texts have their length before them. Processes and threads carry their index. A
//! later entry for the same index replaces the earlier one, as when a name or an end becomes known.

use crate::bytes::{PutBytes, Take};
use crate::error::Malformed;
use crate::*;

type Result<T, E> = std::result::Result<T, E>;

/// One entry of a table, as bytes.
pub(crate) trait Entry: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(take: &mut Take<'_>) -> Result<Self, Malformed>;
}

/// Decodes all entries of an untrusted stream.
pub(crate) fn take_all<T: Entry>(stream: &[u8], count: usize) -> Result<Vec<T>, Malformed> {
    let mut take = Take::new(stream);
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(T::take(&mut take)?);
    }
    if take.is_empty() { Ok(entries) } else { Err(Malformed("it has bytes left over")) }
}

fn put_option(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            out.put_varint(value);
        }
    }
}

fn take_option(take: &mut Take<'_>) -> Result<Option<u64>, Malformed> {
    match take.u8()? {
        0 => Ok(None),
        1 => take.varint().map(Some),
        _ => Err(Malformed("a field is neither there nor not there")),
    }
}

impl Entry for System {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_text(&self.kernel);
        out.put_text(&self.machine);
        out.put_text(&self.distribution);
        out.put_varint(u64::from(self.cpu_count));
        out.put_varint(self.memory_bytes);
        out.put_varint(self.page_bytes);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            kernel: take.text()?,
            machine: take.text()?,
            distribution: take.text()?,
            cpu_count: take.varint32()?,
            memory_bytes: take.varint()?,
            page_bytes: take.varint()?,
        })
    }
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    out.put_varint(texts.len() as u64);
    texts.iter().for_each(|text| out.put_text(text));
}

fn take_texts(take: &mut Take<'_>) -> Result<Vec<String>, Malformed> {
    let count = take.count()?;
    (0..count).map(|_| take.text()).collect()
}

impl Entry for Session {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_text(&self.name);
        out.put_text(&self.heapr_version);
        put_texts(out, &self.command_line);
        out.put_varint(self.start_unix_ns);
        out.put_text(&self.clock);
        for number in [self.buffer_bytes, self.min_buffers, self.max_buffers, self.flush_timer_ms] {
            out.put_varint(u64::from(number));
        }
        out.put_text(&self.on_full);
        out.put_text(&self.stacks);
        out.put_varint(u64::from(self.max_frames));
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            name: take.text()?,
            heapr_version: take.text()?,
            command_line: take_texts(take)?,
            start_unix_ns: take.varint()?,
            clock: take.text()?,
            buffer_bytes: take.varint32()?,
            min_buffers: take.varint32()?,
            max_buffers: take.varint32()?,
            flush_timer_ms: take.varint32()?,
            on_full: take.text()?,
            stacks: take.text()?,
            max_frames: take.varint32()?,
        })
    }
}

impl Entry for (ProcessIndex, Process) {
    fn put(&self, out: &mut Vec<u8>) {
        let (index, process) = self;
        out.put_varint(u64::from(index.0));
        out.put_varint(u64::from(process.pid));
        out.put_varint(u64::from(process.parent_pid));
        put_option(
            out,
            match process.origin {
                ProcessOrigin::Exec => None,
                ProcessOrigin::Fork { parent } => Some(u64::from(parent.0)),
            },
        );
        out.put_varint(process.start_ns);
        put_option(out, process.end_ns);
        out.put_text(&process.executable);
        put_texts(out, &process.command_line);
        put_option(out, process.exit_status.map(|status| u64::from(status.cast_unsigned())));
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let index = ProcessIndex(take.varint32()?);
        let pid = take.varint32()?;
        let parent_pid = take.varint32()?;
        let origin = match take_option(take)? {
            None => ProcessOrigin::Exec,
            Some(parent) => ProcessOrigin::Fork { parent: ProcessIndex(parent as u32) },
        };
        let process = Process {
            pid,
            parent_pid,
            origin,
            start_ns: take.varint()?,
            end_ns: take_option(take)?,
            executable: take.text()?,
            command_line: take_texts(take)?,
            exit_status: take_option(take)?.map(|status| (status as u32).cast_signed()),
        };
        Ok((index, process))
    }
}

impl Entry for (ThreadIndex, Thread) {
    fn put(&self, out: &mut Vec<u8>) {
        let (index, thread) = self;
        out.put_varint(u64::from(index.0));
        out.put_varint(u64::from(thread.process.0));
        out.put_varint(u64::from(thread.tid));
        out.put_text(&thread.name);
        out.put_varint(thread.start_ns);
        put_option(out, thread.end_ns);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let index = ThreadIndex(take.varint32()?);
        let thread = Thread {
            process: ProcessIndex(take.varint32()?),
            tid: take.varint32()?,
            name: take.text()?,
            start_ns: take.varint()?,
            end_ns: take_option(take)?,
        };
        Ok((index, thread))
    }
}

impl Entry for Module {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_text(&self.path);
        out.put_bytes(&self.build_id);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self { path: take.text()?, build_id: take.byte_string()? })
    }
}

impl Entry for (u32, Mapping) {
    fn put(&self, out: &mut Vec<u8>) {
        let (number, mapping) = self;
        for value in [*number, mapping.process.0, mapping.module.0] {
            out.put_varint(u64::from(value));
        }
        for value in [mapping.start_avma, mapping.end_avma, mapping.bias_avma, mapping.loaded_ns] {
            out.put_varint(value);
        }
        put_option(out, (mapping.unloaded_ns != u64::MAX).then_some(mapping.unloaded_ns));
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let number = take.varint32()?;
        let mapping = Mapping {
            process: ProcessIndex(take.varint32()?),
            module: ModuleIndex(take.varint32()?),
            start_avma: take.varint()?,
            end_avma: take.varint()?,
            bias_avma: take.varint()?,
            loaded_ns: take.varint()?,
            unloaded_ns: take_option(take)?.unwrap_or(u64::MAX),
        };
        Ok((number, mapping))
    }
}

impl Entry for Marker {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.time_ns);
        out.put_text(&self.text);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self { time_ns: take.varint()?, text: take.text()? })
    }
}

impl Entry for RssSample {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.time_ns);
        out.put_varint(u64::from(self.process.0));
        out.put_varint(self.rss_bytes);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            time_ns: take.varint()?,
            process: ProcessIndex(take.varint32()?),
            rss_bytes: take.varint()?,
        })
    }
}

impl Entry for ResidentSample {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.time_ns);
        out.put_varint(u64::from(self.process.0));
        for bytes in [
            self.anonymous_bytes,
            self.file_bytes,
            self.shared_memory_bytes,
            self.swapped_bytes,
            self.page_table_bytes,
            self.most_rss_bytes,
        ] {
            out.put_varint(bytes);
        }
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            time_ns: take.varint()?,
            process: ProcessIndex(take.varint32()?),
            anonymous_bytes: take.varint()?,
            file_bytes: take.varint()?,
            shared_memory_bytes: take.varint()?,
            swapped_bytes: take.varint()?,
            page_table_bytes: take.varint()?,
            most_rss_bytes: take.varint()?,
        })
    }
}

impl Entry for MemoryAccount {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.time_ns);
        out.put_varint(u64::from(self.process.0));
        out.put_varint(self.anonymous_bytes);
        out.put_varint(self.agent_bytes);
        out.put_varint(self.parts.len() as u64);
        for part in &self.parts {
            out.put_text(&part.kind.to_string());
            out.put_varint(part.bytes);
            out.put_varint(u64::from(part.stack.0));
            out.put_varint(u64::from(part.is_unseen));
        }
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let time_ns = take.varint()?;
        let process = ProcessIndex(take.varint32()?);
        let (anonymous_bytes, agent_bytes) = (take.varint()?, take.varint()?);
        let count = take.count()?;
        let part = |take: &mut Take<'_>| {
            Ok(MemoryPart {
                kind: PartKind::of_text(take.text()?),
                bytes: take.varint()?,
                stack: StackIndex(take.varint32()?),
                is_unseen: take.varint()? != 0,
            })
        };
        let parts = (0..count).map(|_| part(take)).collect::<Result<_, _>>()?;
        Ok(Self { time_ns, process, anonymous_bytes, agent_bytes, parts })
    }
}

impl Entry for LossEntry {
    fn put(&self, out: &mut Vec<u8>) {
        put_option(out, self.process.map(|process| u64::from(process.0)));
        put_option(out, self.thread.map(|thread| u64::from(thread.0)));
        let loss = &self.loss;
        for count in [
            loss.events_lost,
            loss.stacks_lost,
            loss.events_late,
            loss.records_invalid,
            loss.processes_refused,
        ] {
            out.put_varint(count);
        }
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            process: take_option(take)?.map(|index| ProcessIndex(index as u32)),
            thread: take_option(take)?.map(|index| ThreadIndex(index as u32)),
            loss: Loss {
                events_lost: take.varint()?,
                stacks_lost: take.varint()?,
                events_late: take.varint()?,
                records_invalid: take.varint()?,
                processes_refused: take.varint()?,
            },
        })
    }
}

impl Entry for Statistic {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_text(&self.name);
        out.put_varint(self.value);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self { name: take.text()?, value: take.varint()? })
    }
}

impl Entry for HeapName {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.process.0));
        out.push(self.heap.0);
        out.put_text(&self.name);
        out.put_varint(self.first_ns);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            process: ProcessIndex(take.varint32()?),
            heap: HeapId(take.u8()?),
            name: take.text()?,
            first_ns: take.varint()?,
        })
    }
}

impl Entry for Notice {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.process.0));
        out.put_varint(self.time_ns);
        out.put_text(&self.text);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self { process: ProcessIndex(take.varint32()?), time_ns: take.varint()?, text: take.text()? })
    }
}

impl Entry for SamplingPeriod {
    fn put(&self, out: &mut Vec<u8>) {
        // (`EVERY_PROCESS` wraps to 0.)
        out.put_varint(u64::from(self.process.0.wrapping_add(1)));
        out.put_varint(self.from_ns);
        out.put_varint(self.mean_bytes);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let process = ProcessIndex(take.varint32()?.wrapping_sub(1));
        Ok(Self { process, from_ns: take.varint()?, mean_bytes: take.varint()? })
    }
}

impl Entry for LanguageFunction {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.process.0));
        out.push(self.language.0);
        out.put_varint(u64::from(self.number));
        out.put_text(&self.name);
        out.put_text(&self.file);
        out.put_varint(u64::from(self.first_line));
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            process: ProcessIndex(take.varint32()?),
            language: Language(take.u8()?),
            number: take.varint32()?,
            name: take.text()?,
            file: take.text()?,
            first_line: take.varint32()?,
        })
    }
}
