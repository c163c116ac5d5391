//! Reads the members of a snapshot, in whatever order they stand.

use std::io::Read;
use std::path::Path;

use heapr_graph::Graph;

use crate::format::allocation_trace::{AllocationTrace, TimeSample, TraceFunction, read_trace_tree};
use crate::format::digits::{Block, Numbers};
use crate::format::edge_columns::{EdgeFilling, EdgeRows};
use crate::format::input::Input;
use crate::format::locations::{Location, Locations};
use crate::format::meta::position;
use crate::format::node_columns::NodeFilling;
use crate::format::scanner::Scanner;
use crate::format::section::{SectionEnd, decode_exactly, read_rows};
use crate::format::{EdgeColumns, Meta, NodeColumns, Problem, Strings};
use crate::{Error, Result, Snapshot};

/// How to read.
pub struct ReadOptions<'a> {
    /// Threads that decode; 0 takes as many as the machine runs at once (at most 8).
    pub thread_count: usize,
    /// Called now and then with the bytes read and, where it is known, the length of the file.
    pub progress: &'a (dyn Fn(u64, Option<u64>) + Sync),
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self { thread_count: 0, progress: &|_, _| {} }
    }
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOptions").field("thread_count", &self.thread_count).finish_non_exhaustive()
    }
}

/// No header of a real snapshot comes near.
const HEADER_LIMIT_BYTES: usize = 1 << 20;

pub(crate) fn read_path(path: &Path, options: &ReadOptions<'_>) -> Result<Snapshot> {
    let input = Input::open(path).map_err(|source| Error::Io { offset: 0, source })?;
    Reader::new(input, options).read()
}

pub(crate) fn read_stream(reader: impl Read + Send + 'static, options: &ReadOptions<'_>) -> Result<Snapshot> {
    let input = Input::stream(reader, None).map_err(|source| Error::Io { offset: 0, source })?;
    Reader::new(input, options).read()
}

struct Reader<'a> {
    scanner: Scanner,
    options: &'a ReadOptions<'a>,
    thread_count: usize,
    problems: Vec<Problem>,
    meta: Option<Meta>,
    nodes: Option<(NodeColumns, Vec<u32>)>,
    edges: Option<(EdgeColumns, Vec<u32>)>,
    edges_truncated: bool,
    strings: Option<Strings>,
    locations: Vec<(u64, Location)>,
    trace: AllocationTrace,
    seen: Vec<Vec<u8>>,
    /// Members that stood before the header: name and offset of the value.
    deferred: Vec<(Vec<u8>, u64)>,
    is_ended: bool,
}

impl<'a> Reader<'a> {
    fn new(input: Input, options: &'a ReadOptions<'a>) -> Self {
        let machine = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        Self {
            scanner: Scanner::new(input),
            options,
            thread_count: if options.thread_count == 0 { machine } else { options.thread_count },
            problems: Vec::new(),
            meta: None,
            nodes: None,
            edges: None,
            edges_truncated: false,
            strings: None,
            locations: Vec::new(),
            trace: AllocationTrace::default(),
            seen: Vec::new(),
            deferred: Vec::new(),
            is_ended: false,
        }
    }

    fn read(mut self) -> Result<Snapshot> {
        if self.scanner.peek()?.is_none() {
            return Err(Error::Empty);
        }
        self.members()?;
        for (name, offset) in std::mem::take(&mut self.deferred) {
            if self.meta.is_none() {
                return Err(Error::NoMember { name: "snapshot" });
            }
            self.scanner.seek(offset)?;
            self.member(&name)?;
        }
        self.finish()
    }

    /// The members up to the end of the object.
    fn members(&mut self) -> Result<()> {
        self.scanner.expect(b'{', "'{'")?;
        if self.scanner.take_if(b'}')? {
            return Ok(());
        }
        let mut name = Vec::new();
        while !self.is_ended {
            if self.scanner.peek()?.is_none() {
                break;
            }
            name.clear();
            if !self.scanner.string(&mut name)? || self.scanner.peek()?.is_none() {
                break;
            }
            self.scanner.expect(b':', "':'")?;
            if self.seen.contains(&name) {
                let offset = self.scanner.offset();
                self.problems
                    .push(Problem::Repeated { name: String::from_utf8_lossy(&name).into_owned(), offset });
                self.is_ended = !self.scanner.value(None, usize::MAX)?;
            } else if self.must_wait(&name) {
                if !self.scanner.can_seek() {
                    // What was passed is gone: begin anew with a copy that can be read from anywhere.
                    if !self.scanner.has_all() {
                        return Err(Error::NoMember { name: "snapshot" });
                    }
                    self.scanner.make_seekable()?;
                    self.seen.clear();
                    return self.members();
                }
                self.deferred.push((name.clone(), self.scanner.offset()));
                self.pass(&name)?;
            } else {
                self.member(&name)?;
            }
            self.seen.push(name.clone());
            match self.scanner.peek()? {
                Some(b',') => self.scanner.skip_byte(),
                Some(b'}') => {
                    self.scanner.skip_byte();
                    if self.scanner.peek()?.is_some() {
                        self.problems.push(Problem::TrailingText { offset: self.scanner.offset() });
                    }
                    return Ok(());
                }
                None => break,
                found => {
                    return Err(Error::Unexpected {
                        offset: self.scanner.offset(),
                        expected: "',' or '}'",
                        found,
                    });
                }
            }
        }
        self.is_ended = true;
        Ok(())
    }

    /// Without the header nobody knows what the numbers mean.
    fn must_wait(&self, name: &[u8]) -> bool {
        let needs_meta: [&[u8]; 6] =
            [b"nodes", b"edges", b"locations", b"trace_function_infos", b"trace_tree", b"samples"];
        match &self.meta {
            None => needs_meta.contains(&name),
            // Without counts the columns are sized by the length of the file.
            Some(meta) => {
                !self.scanner.can_seek()
                    && (name == b"nodes" && meta.node_count.is_none()
                        || name == b"edges" && meta.edge_count.is_none())
            }
        }
    }

    fn pass(&mut self, name: &[u8]) -> Result<()> {
        self.is_ended = if name == b"trace_tree" {
            !self.scanner.value(None, usize::MAX)?
        } else {
            !self.scanner.skip_numbers()?
        };
        Ok(())
    }

    fn member(&mut self, name: &[u8]) -> Result<()> {
        match name {
            b"snapshot" => self.header(),
            b"nodes" => self.nodes(),
            b"edges" => self.edges(),
            b"strings" => self.strings(),
            b"locations" => self.locations(),
            b"trace_function_infos" => self.trace_functions(),
            b"trace_tree" => self.trace_tree(),
            b"samples" => self.samples(),
            _ => {
                self.is_ended = !self.scanner.value(None, usize::MAX)?;
                Ok(())
            }
        }
    }

    fn meta(&self) -> Result<Meta> {
        self.meta.clone().ok_or(Error::NoMember { name: "snapshot" })
    }

    fn header(&mut self) -> Result<()> {
        self.scanner.peek()?;
        let offset = self.scanner.offset();
        let mut text = Vec::new();
        if !self.scanner.value(Some(&mut text), HEADER_LIMIT_BYTES)? {
            return Err(Error::Truncated { offset: self.scanner.offset(), inside: "\"snapshot\"" });
        }
        self.meta = Some(Meta::parse(&text, offset)?);
        Ok(())
    }

    /// How many rows to make room for.
    fn row_limit(&self, what: &'static str, promised: Option<u64>, stride: usize) -> Result<usize> {
        // A number and its comma take two bytes at least.
        let possible = self.scanner.input().text_limit().map(|limit| limit / (2 * stride as u64) + 1);
        let count = match (promised, possible) {
            (Some(promised), Some(possible)) => promised.min(possible),
            (Some(count), None) | (None, Some(count)) => count,
            (None, None) => 0,
        };
        if count >= u64::from(u32::MAX) {
            return Err(Error::TooMany { what, count });
        }
        // Zeroed memory costs nothing until it is written; but a header that lies must not end the process.
        if Vec::<u32>::new().try_reserve_exact(count as usize * 4).is_err() {
            return Err(Error::NoMemory { what, count });
        }
        Ok(count as usize)
    }

    fn rows_ended(&mut self, section: &'static str, end: SectionEnd, promised: Option<u64>) {
        let found = (end.row_count + end.surplus_count) as u64;
        if end.is_truncated {
            self.is_ended = true;
            self.problems.push(Problem::Truncated {
                section,
                offset: self.scanner.offset(),
                read_count: end.row_count as u64,
            });
        } else if let Some(promised) = promised.filter(|&promised| promised != found) {
            self.problems.push(Problem::CountDiffers { section, promised, found });
        }
    }

    fn nodes(&mut self) -> Result<()> {
        let meta = self.meta()?;
        self.scanner.expect(b'[', "a list")?;
        let limit = self.row_limit("nodes", meta.node_count, meta.node.stride)?;
        let has_trace = meta.trace_function_count > 0 && meta.node.trace_node_id.is_some();
        let mut nodes = NodeColumns::with_rows(limit, has_trace);
        // One more: these become the borders of each node's edges.
        let mut edge_counts = vec![0; limit + 1];
        let filling = NodeFilling::new(meta.node, meta.node_kinds(), has_trace);
        let rows = nodes.rows(&mut edge_counts[..limit], &filling);
        let progress = self.options.progress;
        let end = read_rows(&mut self.scanner, "nodes", meta.node.stride, rows, self.thread_count, progress)?;
        nodes.take_wide(filling);
        if end.row_count < limit {
            nodes.truncate(end.row_count);
            edge_counts.truncate(end.row_count + 1);
            edge_counts.shrink_to_fit();
        }
        self.rows_ended("nodes", end, meta.node_count);
        self.nodes = Some((nodes, edge_counts));
        Ok(())
    }

    fn edges(&mut self) -> Result<()> {
        let meta = self.meta()?;
        self.scanner.expect(b'[', "a list")?;
        let limit = self.row_limit("edges", meta.edge_count, meta.edge.stride)?;
        let mut edges = EdgeColumns { names: vec![0; limit], kinds: vec![0; limit] };
        let mut targets = vec![0; limit];
        let filling = EdgeFilling::new(meta.edge, meta.edge_kinds(), meta.node.stride);
        let rows = EdgeRows {
            names: &mut edges.names,
            kinds: &mut edges.kinds,
            targets: &mut targets,
            filling: &filling,
        };
        let progress = self.options.progress;
        let end = read_rows(&mut self.scanner, "edges", meta.edge.stride, rows, self.thread_count, progress)?;
        if end.row_count < limit {
            edges.truncate(end.row_count);
            targets.truncate(end.row_count);
            targets.shrink_to_fit();
        }
        self.edges_truncated = end.is_truncated;
        self.rows_ended("edges", end, meta.edge_count);
        self.edges = Some((edges, targets));
        Ok(())
    }

    fn strings(&mut self) -> Result<()> {
        self.scanner.expect(b'[', "a list")?;
        let mut strings = Strings::default();
        loop {
            match self.scanner.peek()? {
                Some(b']') => {
                    self.scanner.skip_byte();
                    break;
                }
                Some(b',') => self.scanner.skip_byte(),
                None => {
                    self.strings_truncated(&strings);
                    break;
                }
                Some(_) => {
                    let whole = self.scanner.string(strings.text_mut())?;
                    strings.end_string()?;
                    if !whole {
                        self.strings_truncated(&strings);
                        break;
                    }
                    if strings.count().is_multiple_of(1 << 16) {
                        let (done, all) = self.scanner.input().progress();
                        (self.options.progress)(done, all);
                    }
                }
            }
        }
        strings.shrink();
        self.strings = Some(strings);
        Ok(())
    }

    fn strings_truncated(&mut self, strings: &Strings) {
        self.is_ended = true;
        self.problems.push(Problem::Truncated {
            section: "strings",
            offset: self.scanner.offset(),
            read_count: u64::from(strings.count()),
        });
    }

    /// Calls `row` for each row of a list whose length is not known before.
    fn each_row(&mut self, section: &'static str, stride: usize, mut row: impl FnMut(&[u64])) -> Result<()> {
        self.scanner.expect(b'[', "a list")?;
        let (mut block, mut numbers, mut values) = (Block::default(), Numbers::default(), Vec::new());
        let mut row_count = 0;
        loop {
            let taken = self.scanner.rows(stride, &mut block)?;
            // Some lists hold -1 for "none"; DevTools passes over the sign, too.
            for byte in block.bytes.iter_mut().filter(|byte| **byte == b'-') {
                *byte = b' ';
            }
            decode_exactly(&mut block, &mut numbers, taken.number_count)?;
            if !taken.number_count.is_multiple_of(stride) {
                let number_count = row_count * stride as u64 + taken.number_count as u64;
                return Err(Error::RaggedRows { section, number_count, stride });
            }
            for first in (0..taken.number_count).step_by(stride) {
                values.clear();
                values.extend((first..first + stride).map(|index| numbers.get(index)));
                row(&values);
            }
            row_count += (taken.number_count / stride) as u64;
            if taken.is_truncated {
                self.is_ended = true;
                self.problems.push(Problem::Truncated {
                    section,
                    offset: self.scanner.offset(),
                    read_count: row_count,
                });
            }
            if taken.is_last {
                return Ok(());
            }
        }
    }

    fn locations(&mut self) -> Result<()> {
        let meta = self.meta()?;
        let fields = &meta.location_fields;
        let places = ["object_index", "script_id", "line", "column"].map(|name| position(fields, name));
        let [Some(object), Some(script), Some(line), Some(column)] = places else {
            self.is_ended = !self.scanner.value(None, usize::MAX)?;
            return Ok(());
        };
        let mut locations = Vec::new();
        let stride = meta.node.stride as u64;
        self.each_row("locations", fields.len(), |row| {
            let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            // A position that no node begins at belongs to none.
            let node =
                if row[object].is_multiple_of(stride) { narrow(row[object] / stride) } else { u32::MAX };
            let location = Location {
                node,
                script_id: narrow(row[script]),
                line: narrow(row[line]),
                column: narrow(row[column]),
            };
            locations.push((row[object], location));
        })?;
        self.locations = locations;
        Ok(())
    }

    fn trace_functions(&mut self) -> Result<()> {
        let meta = self.meta()?;
        let fields = &meta.trace_function_fields;
        if fields.is_empty() {
            self.is_ended = !self.scanner.value(None, usize::MAX)?;
            return Ok(());
        }
        let place = |name: &str| position(fields, name);
        let places = ["function_id", "name", "script_name", "script_id", "line", "column"].map(place);
        let mut functions = Vec::new();
        self.each_row("trace_function_infos", fields.len(), |row| {
            let value = |index: usize| places[index].map_or(0, |place| row[place]);
            let narrow = |index: usize| u32::try_from(value(index)).unwrap_or(u32::MAX);
            functions.push(TraceFunction {
                function_id: value(0),
                name: narrow(1),
                script_name: narrow(2),
                script_id: value(3),
                line: narrow(4),
                column: narrow(5),
            });
        })?;
        self.trace.functions = functions;
        Ok(())
    }

    fn trace_tree(&mut self) -> Result<()> {
        let meta = self.meta()?;
        if meta.trace_node_fields.is_empty() {
            self.is_ended = !self.scanner.value(None, usize::MAX)?;
            return Ok(());
        }
        if !read_trace_tree(&mut self.scanner, &meta.trace_node_fields, &mut self.trace.nodes)? {
            self.is_ended = true;
            let read_count = self.trace.nodes.len() as u64;
            self.problems.push(Problem::Truncated {
                section: "trace_tree",
                offset: self.scanner.offset(),
                read_count,
            });
        }
        Ok(())
    }

    fn samples(&mut self) -> Result<()> {
        let meta = self.meta()?;
        let fields = &meta.sample_fields;
        let (Some(time), Some(id)) = (position(fields, "timestamp_us"), position(fields, "last_assigned_id"))
        else {
            self.is_ended = !self.scanner.value(None, usize::MAX)?;
            return Ok(());
        };
        let mut samples = Vec::new();
        self.each_row("samples", fields.len(), |row| {
            samples.push(TimeSample { timestamp_us: row[time], last_assigned_id: row[id] });
        })?;
        self.trace.samples = samples;
        Ok(())
    }

    /// A member that is not there is a broken file; unless the file breaks off, then it is made do without.
    fn missing(&mut self, section: &'static str) -> Result<()> {
        if !self.is_ended {
            return Err(Error::NoMember { name: section });
        }
        self.problems.push(Problem::Missing { section });
        Ok(())
    }

    fn finish(mut self) -> Result<Snapshot> {
        let meta = self.meta()?;
        let Some((nodes, mut first_edge)) = self.nodes.take() else {
            if self.is_ended {
                return Err(Error::Truncated {
                    offset: self.scanner.offset(),
                    inside: "what stands before \"nodes\"",
                });
            }
            return Err(Error::NoMember { name: "nodes" });
        };
        if nodes.count() == 0 {
            return Err(Error::BadRoot { root_index: meta.root_index });
        }
        let (edges, targets) = match self.edges.take() {
            Some(edges) => edges,
            None => {
                self.missing("edges")?;
                self.edges_truncated = true;
                (EdgeColumns::default(), Vec::new())
            }
        };
        let strings = match self.strings.take() {
            Some(strings) => strings,
            None => {
                self.missing("strings")?;
                Strings::default()
            }
        };
        let counted = counts_to_borders(&mut first_edge);
        let found = targets.len() as u64;
        if counted > found && self.edges_truncated {
            for border in &mut first_edge {
                *border = (*border).min(found as u32);
            }
        } else if counted != found {
            return Err(Error::EdgeCounts { counted, found });
        }
        let root = (meta.root_index / meta.node.stride as u64) as u32;
        if !meta.root_index.is_multiple_of(meta.node.stride as u64)
            || meta.root_index / meta.node.stride as u64 >= nodes.count() as u64
        {
            return Err(Error::BadRoot { root_index: meta.root_index });
        }
        let graph = Graph::new(first_edge, targets)?;
        let locations = self.sorted_locations(nodes.count());
        let has_trace = meta.trace_function_count > 0 || !self.trace.samples.is_empty();
        let mut snapshot = Snapshot {
            meta,
            nodes,
            edges,
            graph,
            root,
            strings,
            locations,
            trace: has_trace.then_some(self.trace),
            problems: self.problems,
        };
        if self.is_ended {
            snapshot.forget_names_outside();
        }
        Ok(snapshot)
    }

    fn sorted_locations(&mut self, node_count: usize) -> Locations {
        let all = std::mem::take(&mut self.locations);
        let outside = |location: &Location| location.node as usize >= node_count;
        if let Some(&(object_index, _)) = all.iter().find(|(_, location)| outside(location)) {
            let count = all.iter().filter(|(_, location)| outside(location)).count() as u64;
            self.problems.push(Problem::LocationOutside { count, object_index });
        }
        Locations::new(
            all.into_iter().map(|(_, location)| location).filter(|location| !outside(location)).collect(),
        )
    }
}

/// Turns the counts of all but the last entry into sums of what stands before; the sum of all.
fn counts_to_borders(counts: &mut [u32]) -> u64 {
    let mut sum = 0u64;
    for slot in counts {
        let count = *slot;
        // More than 32 bits is an error that the sum tells; until then any border will do.
        *slot = u32::try_from(sum).unwrap_or(u32::MAX);
        sum += u64::from(count);
    }
    sum
}
