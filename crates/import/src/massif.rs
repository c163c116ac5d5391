//! massif's output: snapshots, some of which contain the heap as a tree of callers.
//!
//! The trace has the peak, the end, and the live bytes at each snapshot.

use std::collections::BTreeMap;

use heapr_trace::{Amounts, CourseRow, StackIndex, Untold};

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::Frame;
use crate::valgrind_frame;

/// Name of the tool.
pub(crate) const TOOL: &str = "massif";

/// True for text that begins with `desc: …` and contains `cmd: …`.
pub(crate) fn tells(start: &[u8]) -> bool {
    start.starts_with(b"desc:") && start.windows(5).any(|window| window == b"\ncmd:")
}

/// Largest depth of a tree; massif's own limit is 200.
const DEPTH_MAX: usize = 1000;

/// A stack with its bytes.
type Row = (StackIndex, u64);

/// A node whose children follow.
struct Open {
    bytes: u64,
    of_children: u64,
    call: Option<u64>,
}

#[derive(Default)]
struct Snapshot {
    number: u64,
    time: u64,
    heap_bytes: u64,
    extra_bytes: u64,
    stack_bytes: u64,
    is_peak: bool,
    has_tree: bool,
    rows: Vec<Row>,
}

/// Part of a file that has been read.
struct Reading {
    /// Nanoseconds per unit of time.
    unit: u64,
    unit_name: String,
    /// Number of snapshots.
    count: u64,
    current: Snapshot,
    peak: Option<Snapshot>,
}

/// Reads a file into the builder.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let mut reading =
        Reading { unit: 1, unit_name: String::new(), count: 0, current: Snapshot::default(), peak: None };
    let mut line = Vec::new();
    while let Some(offset) = input.line(&mut line)? {
        let text = String::from_utf8_lossy(&line);
        if let Some((key, value)) = text.split_once('=').filter(|(key, _)| is_key(key)) {
            reading.field((key, value), offset, input, builder)?;
        } else if let Some(command) = text.strip_prefix("cmd: ") {
            builder.command_line = command.split_whitespace().map(str::to_owned).collect();
        } else if let Some(name) = text.strip_prefix("time_unit: ") {
            name.trim().clone_into(&mut reading.unit_name);
            reading.unit = if reading.unit_name == "ms" { 1_000_000 } else { 1 };
        } else if !text.is_empty() && !text.starts_with('#') && !text.starts_with("desc:") {
            builder.invalid(offset);
        }
    }
    if reading.count == 0 {
        return Err(Error::Malformed {
            tool: TOOL,
            offset: input.offset(),
            what: "there is no snapshot".to_owned(),
        });
    }
    reading.end(builder)
}

impl Reading {
    /// Reads a field of a snapshot. `offset`: of its line.
    fn field(
        &mut self,
        (key, value): (&str, &str),
        offset: u64,
        input: &mut Input<'_>,
        builder: &mut TraceBuilder,
    ) -> Result<()> {
        let number = || {
            let malformed = || Error::Malformed { tool: TOOL, offset, what: format!("{key} is no number") };
            value.trim().parse::<u64>().map_err(|_| malformed())
        };
        match key {
            "snapshot" => {
                if self.count > 0 {
                    moment(&self.current, self.unit, builder)?;
                    keep_greatest(&mut self.peak, std::mem::take(&mut self.current));
                }
                self.current.number = number()?;
                self.count += 1;
            }
            "time" => self.current.time = number()?,
            "mem_heap_B" => self.current.heap_bytes = number()?,
            "mem_heap_extra_B" => self.current.extra_bytes = number()?,
            "mem_stacks_B" => self.current.stack_bytes = number()?,
            "heap_tree" => {
                self.current.has_tree = value != "empty";
                self.current.is_peak = value == "peak";
                if self.current.has_tree {
                    self.current.rows = tree(input, builder)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the end, the peak and the notes about both, when all lines are read.
    fn end(mut self, builder: &mut TraceBuilder) -> Result<()> {
        builder.duration_ns = self.current.time.saturating_mul(self.unit);
        end_rows(&self.current, builder)?;
        moment(&self.current, self.unit, builder)?;
        keep_greatest(&mut self.peak, self.current);
        let is_time_known = self.unit_name == "ms" || self.unit_name.is_empty();
        if !is_time_known {
            let what = if self.unit_name == "i" { "instructions" } else { "allocated bytes" };
            builder.note(format!("massif counted time in {what}: shown as that many ns"));
        }
        if let Some(peak) = self.peak {
            builder.untold = Untold {
                counts: true,
                totals: true,
                reallocs: true,
                temporary: true,
                times: !is_time_known,
                ..Untold::default()
            };
            builder.peak_time_ns = peak.time.saturating_mul(self.unit);
            peak_rows(peak, self.count, builder)?;
        }
        Ok(())
    }
}

/// Adds the stacks of the peak. `count`: number of all snapshots.
fn peak_rows(peak: Snapshot, count: u64, builder: &mut TraceBuilder) -> Result<()> {
    let rows = match peak.has_tree {
        true => peak.rows,
        false => vec![(nameless(builder, "(massif's highest snapshot tells no stacks)")?, peak.heap_bytes)],
    };
    for (stack, bytes) in rows {
        builder.add(stack, &Amounts { peak_bytes: bytes, ..Amounts::default() });
    }
    builder.note(format!(
        "of {count} snapshots of massif the stacks are those of the peak (number {}{}) and the end; {} bytes of the allocator's own and {} \
         of stacks at the peak are not among them; massif tells neither blocks nor totals: they are unknown",
        peak.number,
        if peak.is_peak { "" } else { ", the highest: massif marks none" },
        peak.extra_bytes,
        peak.stack_bytes
    ));
    Ok(())
}

fn is_key(key: &str) -> bool {
    matches!(key, "snapshot" | "time" | "mem_heap_B" | "mem_heap_extra_B" | "mem_stacks_B" | "heap_tree")
}

/// Replaces the peak if `other` is greater. The peak is the snapshot that massif marks, else the
/// greatest one: short programs have no marked peak, and often no stacks.
fn keep_greatest(peak: &mut Option<Snapshot>, other: Snapshot) {
    let rank = |snapshot: &Snapshot| (snapshot.is_peak, snapshot.heap_bytes, snapshot.has_tree);
    if peak.as_ref().is_none_or(|peak| rank(&other) > rank(peak)) {
        *peak = Some(other);
    }
}

/// Adds a snapshot's live bytes to the course.
fn moment(snapshot: &Snapshot, unit: u64, builder: &mut TraceBuilder) -> Result<()> {
    let mut by_stack: BTreeMap<StackIndex, u64> = BTreeMap::new();
    for (stack, bytes) in &snapshot.rows {
        let live_bytes = by_stack.entry(*stack).or_default();
        *live_bytes = live_bytes.saturating_add(*bytes);
    }
    let rows = by_stack.into_iter().map(|(stack, live_bytes)| CourseRow {
        stack,
        live_bytes,
        ..CourseRow::default()
    });
    builder.moment(snapshot.time.saturating_mul(unit), snapshot.heap_bytes, rows.collect());
    Ok(())
}

fn end_rows(last: &Snapshot, builder: &mut TraceBuilder) -> Result<()> {
    if last.has_tree {
        for (stack, bytes) in &last.rows {
            builder.add(*stack, &Amounts { outstanding_bytes: *bytes, ..Amounts::default() });
        }
    } else if last.heap_bytes > 0 {
        let stack = nameless(builder, "(massif's last snapshot tells no stacks)")?;
        builder.add(stack, &Amounts { outstanding_bytes: last.heap_bytes, ..Amounts::default() });
    }
    Ok(())
}

/// Stack that stands for unknown stacks.
fn nameless(builder: &mut TraceBuilder, name: &str) -> Result<StackIndex> {
    let call = builder.named("", &[], vec![Frame { name: name.to_owned(), file: String::new(), line: 0 }])?;
    builder.stack_of(&[call])
}

/// Parses a tree of lines ` n2: 7800 0x109151: leaf (a.c:4)`: depth by spaces, number of children,
/// bytes, frame. The root is the allocator; its children are its callers.
fn tree(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    // Number of nodes that are announced and not read yet.
    let mut missing = 1_u64;
    let mut line = Vec::new();
    while missing > 0 {
        let Some(offset) = input.line(&mut line)? else {
            input.is_cut = true;
            break;
        };
        let malformed = |what: &str| Error::Malformed { tool: TOOL, offset, what: what.to_owned() };
        let text = String::from_utf8_lossy(&line);
        let bare = text.trim_start_matches(' ');
        let depth = text.len() - bare.len();
        let (children, rest) = bare
            .strip_prefix('n')
            .and_then(|rest| rest.split_once(": "))
            .and_then(|(children, rest)| Some((children.parse::<u64>().ok()?, rest)))
            .ok_or_else(|| malformed("this is no line of a tree"))?;
        let (bytes, frame) = rest.split_once(' ').unwrap_or((rest, ""));
        let bytes = bytes.parse::<u64>().map_err(|_| malformed("the size is no number"))?;
        if depth > DEPTH_MAX {
            return Err(malformed("the tree is deeper than massif's are (--depth)"));
        }
        if depth > open.len() {
            return Err(malformed("it is deeper than its caller's line"));
        }
        while open.len() > depth {
            close(&mut open, &mut rows, builder)?;
        }
        missing = (missing - 1).saturating_add(children);
        let call = if depth == 0 {
            None
        } else {
            let (module, frame) = valgrind_frame::parse(frame);
            input.keep(2 * (frame.name.len() + frame.file.len() + module.len() + 64))?;
            Some(builder.named(&module, &[], vec![frame])?)
        };
        if let Some(above) = open.last_mut() {
            above.of_children = above.of_children.saturating_add(bytes);
        }
        open.push(Open { bytes, of_children: 0, call });
    }
    while !open.is_empty() {
        close(&mut open, &mut rows, builder)?;
    }
    Ok(rows)
}

/// Closes a node: bytes beyond those of its children are its own.
fn close(open: &mut Vec<Open>, rows: &mut Vec<Row>, builder: &mut TraceBuilder) -> Result<()> {
    let Some(last) = open.last() else { return Ok(()) };
    let own = last.bytes.saturating_sub(last.of_children);
    if own > 0 {
        let calls: Vec<u64> = open.iter().filter_map(|node| node.call).collect();
        builder.keep(32)?;
        rows.push((builder.stack_of(&calls)?, own));
    }
    open.pop();
    Ok(())
}
