//! Rows of each table.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use heapr_query::{Interval, Metric, RecordedSpan, SymbolSource, for_each_interval, whole_summary};
use heapr_trace::{HeapId, Process, ProcessIndex, StackIndex, StackTotals, Trace};

use super::call_sites::CallSites;
use super::content_id::{ContentId, content_id};
use super::schema::{FRAMES, MAPPINGS, PROCESSES, RESIDENT, SAMPLES, STACKS, Table, UNCERTAIN};
use crate::parquet::{TableWriter, Value};

/// Facts about a recording that its file does not contain.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    /// Name of the machine.
    pub host: &'a str,
    /// Name of the service; `None`: each process's program.
    pub service: Option<&'a str>,
    /// Further labels, as a JSON object.
    pub labels: &'a str,
    /// Name of the file, which distinguishes recordings without a start time.
    pub file: &'a str,
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
}

/// Reason why tables could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The trace could not be read.
    #[error(transparent)]
    Query(#[from] heapr_query::Error),
    /// A table could not be written.
    #[error("writing the tables failed")]
    Write(#[from] io::Error),
}

/// Function that creates the file of a table.
pub type NewFile<'a> = dyn FnMut(&Table) -> io::Result<Box<dyn Write>> + 'a;

struct Context<'a> {
    trace: &'a Trace,
    recording: &'a Recording<'a>,
    services: Vec<String>,
    process_ids: Vec<ContentId>,
}

/// Writes all tables of a trace. Returns the damage found in its events.
///
/// # Errors
/// Returns the errors of the trace and of writing.
pub fn write_tables(
    trace: &Trace,
    recording: &Recording<'_>,
    names: &mut dyn SymbolSource,
    new_file: &mut NewFile<'_>,
) -> Result<Vec<heapr_trace::Damage>, TablesError> {
    let start_unix_ns = trace.session().start_unix_ns;
    let service = |process: &Process| recording.service.unwrap_or(process.name()).to_owned();
    let id = |(number, process): (usize, &Process)| {
        let numbers = [start_unix_ns, u64::from(process.pid), process.start_ns, number as u64];
        let file = if start_unix_ns == 0 { recording.file } else { "" };
        let numbers = numbers.map(u64::to_le_bytes).concat();
        content_id(&[b"process", recording.host.as_bytes(), file.as_bytes(), &numbers])
    };
    let context = Context {
        trace,
        recording,
        services: trace.processes().iter().map(service).collect(),
        process_ids: trace.processes().iter().enumerate().map(id).collect(),
    };
    let (whole, _) = whole_summary(trace)?;
    let stacks: BTreeSet<StackIndex> = whole.by_stack.iter().map(|row| row.stack).collect();
    let stacks: Vec<StackIndex> = stacks.into_iter().collect();
    let sites = CallSites::new(trace, &stacks, names);
    context.processes(new_file)?;
    context.frames(&sites, new_file)?;
    context.stacks(&sites, &stacks, new_file)?;
    context.mappings(new_file)?;
    context.resident(new_file)?;
    context.samples(&sites, new_file)
}

impl Context<'_> {
    /// Microseconds since 1970 UTC.
    fn time(&self, time_ns: u64) -> i64 {
        (self.trace.session().start_unix_ns.saturating_add(time_ns) / 1000) as i64
    }

    fn time_or_none(&self, time_ns: Option<u64>) -> Value<'static> {
        time_ns.map_or(Value::Missing, |time_ns| Value::Number(self.time(time_ns)))
    }

    fn process(&self, process: ProcessIndex) -> (&str, Value<'static>) {
        let place = process.0 as usize;
        let service = self.services.get(place).map_or("", String::as_str);
        (service, Value::Id(self.process_ids.get(place).copied().unwrap_or_default()))
    }

    fn writer(table: &Table, new_file: &mut NewFile<'_>) -> io::Result<TableWriter<Box<dyn Write>>> {
        TableWriter::new(new_file(table)?, &table.columns())
    }

    fn processes(&self, new_file: &mut NewFile<'_>) -> io::Result<()> {
        let mut table = Self::writer(&PROCESSES, new_file)?;
        let session = self.trace.session();
        for (number, process) in (0..).zip(self.trace.processes()) {
            let (service, id) = self.process(ProcessIndex(number));
            table.row(&[
                id,
                Value::Text(self.recording.host),
                Value::Text(service),
                Value::Text(&session.name),
                Value::Number(i64::from(process.pid)),
                Value::Number(i64::from(process.parent_pid)),
                Value::Text(&process.executable),
                Value::Text(&process.command_line.join(" ")),
                Value::Number(self.time(process.start_ns)),
                self.time_or_none(process.end_ns),
                Value::Number(self.time(self.trace.duration_ns())),
                Value::Text(self.recording.labels),
                Value::Text(&session.heapr_version),
                Value::Number(self.trace.sampling().largest_mean_bytes().unwrap_or(1) as i64),
            ])?;
        }
        table.finish().map(drop)
    }

    fn frames(&self, sites: &CallSites, new_file: &mut NewFile<'_>) -> io::Result<()> {
        let mut table = Self::writer(&FRAMES, new_file)?;
        let mut written = BTreeSet::new();
        // Code that was mapped at two addresses is one frame.
        for frame in sites.frames.iter().filter(|frame| written.insert(frame.id)) {
            for (depth, line) in (0..).zip(&frame.lines) {
                table.row(&[
                    Value::Id(frame.id),
                    Value::Number(depth),
                    Value::Text(frame.kind),
                    Value::Text(&frame.module),
                    Value::Text(&frame.build_id),
                    Value::Number(frame.offset as i64),
                    Value::Text(&line.function),
                    Value::Text(&line.file),
                    Value::Number(i64::from(line.line)),
                ])?;
            }
        }
        table.finish().map(drop)
    }

    fn stacks(&self, sites: &CallSites, stacks: &[StackIndex], new_file: &mut NewFile<'_>) -> io::Result<()> {
        let mut table = Self::writer(&STACKS, new_file)?;
        let mut written = BTreeSet::new();
        for &stack in stacks.iter().filter(|&&stack| written.insert(sites.stack_id(stack))) {
            let id = Value::Id(sites.stack_id(stack));
            for (position, frame) in (0..).zip(sites.frames_of(self.trace, stack)) {
                table.row(&[id, Value::Number(position), Value::Id(frame.id)])?;
            }
        }
        table.finish().map(drop)
    }

    fn mappings(&self, new_file: &mut NewFile<'_>) -> io::Result<()> {
        let mut table = Self::writer(&MAPPINGS, new_file)?;
        for mapping in self.trace.mappings() {
            let Some(module) = self.trace.modules().get(mapping.module.0 as usize) else { continue };
            let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            table.row(&[
                self.process(mapping.process).1,
                Value::Text(&module.path),
                Value::Text(&build_id),
                Value::Number(mapping.start_avma as i64),
                Value::Number(mapping.end_avma as i64),
                Value::Number(mapping.bias_avma as i64),
                Value::Number(self.time(mapping.loaded_ns)),
                self.time_or_none(Some(mapping.unloaded_ns).filter(|&time_ns| time_ns != u64::MAX)),
            ])?;
        }
        table.finish().map(drop)
    }

    fn resident(&self, new_file: &mut NewFile<'_>) -> io::Result<()> {
        let mut table = Self::writer(&RESIDENT, new_file)?;
        let mut row = |time_ns: u64, process: ProcessIndex, class: &str, bytes: u64| {
            let (service, id) = self.process(process);
            let host = Value::Text(self.recording.host);
            let time = Value::Number(self.time(time_ns));
            table.row(&[
                time,
                host,
                Value::Text(service),
                id,
                Value::Text(class),
                Value::Number(bytes as i64),
            ])
        };
        for sample in self.trace.resident_samples() {
            for (class, bytes) in [
                ("anonymous", sample.anonymous_bytes),
                ("file", sample.file_bytes),
                ("shared_memory", sample.shared_memory_bytes),
                ("swapped", sample.swapped_bytes),
                ("page_tables", sample.page_table_bytes),
            ] {
                row(sample.time_ns, sample.process, class, bytes)?;
            }
        }
        if self.trace.resident_samples().is_empty() {
            for sample in self.trace.rss_samples() {
                row(sample.time_ns, sample.process, "resident", sample.rss_bytes)?;
            }
        }
        table.finish().map(drop)
    }

    fn samples(
        &self,
        sites: &CallSites,
        new_file: &mut NewFile<'_>,
    ) -> Result<Vec<heapr_trace::Damage>, TablesError> {
        let mut table = Self::writer(&SAMPLES, new_file)?;
        let duration_ns = self.trace.duration_ns();
        // If the session continues in another file, blocks live at this file's end belong to that
        // file.
        let is_last_file = !RecordedSpan::of(self.trace).has_next_file;
        let metrics: Vec<Metric> = Metric::all().collect();
        let mut write = |interval: Interval<'_>| -> Result<(), TablesError> {
            for row in &one_a_stack(interval.rows, sites) {
                let (service, id) = self.process(row.process);
                let heap = heapr_query::json::heap_name(self.trace.heap_names(), row.process, row.heap);
                let mut values = vec![
                    Value::Number(self.time(interval.to_ns)),
                    Value::Number(((interval.to_ns - interval.from_ns) / 1_000_000) as i64),
                    Value::Text(self.recording.host),
                    Value::Text(service),
                    id,
                    Value::Text(&heap),
                    Value::Id(sites.stack_id(row.stack)),
                    Value::Number(i64::from(is_last_file && interval.to_ns >= duration_ns)),
                ];
                let signed = |amount: u64| Value::Number(i64::try_from(amount).unwrap_or(i64::MAX));
                values.extend(metrics.iter().map(|metric| signed(metric.of(&row.amounts))));
                values.extend(UNCERTAIN.iter().map(|(metric, _)| signed(metric.plus_minus(&row.amounts))));
                table.row(&values)?;
            }
            Ok(())
        };
        let damage = for_each_interval(self.trace, self.recording.interval_ns, &mut write)?;
        table.finish()?;
        Ok(damage)
    }
}

/// Adds up rows that are the same stack in the tables. One caller may call several allocation
/// functions, which the tables do not distinguish.
fn one_a_stack(rows: &[StackTotals], sites: &CallSites) -> Vec<StackTotals> {
    let mut places: HashMap<(ContentId, HeapId, ProcessIndex), usize> = HashMap::with_capacity(rows.len());
    let mut summed: Vec<StackTotals> = Vec::with_capacity(rows.len());
    for row in rows {
        let place = *places.entry((sites.stack_id(row.stack), row.heap, row.process)).or_insert(summed.len());
        match summed.get_mut(place) {
            Some(sum) => sum.amounts += &row.amounts,
            None => summed.push(*row),
        }
    }
    summed
}
