//! Reading of a snapshot's members, one by one.

use crate::format::allocation_trace::{TimeSample, TraceFunction, read_trace_tree};
use crate::format::digits::{Block, Numbers};
use crate::format::edge_columns::{EdgeFilling, EdgeRows, MOST_NODES};
use crate::format::edge_names::WideNames;
use crate::format::locations::Location;
use crate::format::meta::position;
use crate::format::node_columns::NodeFilling;
use crate::format::reader::Reader;
use crate::format::section::{SectionEnd, decode_exactly, read_rows};
use crate::format::{EdgeNames, Meta, NodeColumns, Problem, Strings};
use crate::{Error, Result};

/// Largest length of the header, far beyond that of real snapshots.
const HEADER_LIMIT_BYTES: usize = 1 << 20;

impl Reader<'_> {
    pub(super) fn header(&mut self) -> Result<()> {
        self.scanner.peek()?;
        let offset = self.scanner.offset();
        let mut text = Vec::new();
        if !self.scanner.value(Some(&mut text), HEADER_LIMIT_BYTES)? {
            return Err(Error::Truncated { offset: self.scanner.offset(), inside: "\"snapshot\"" });
        }
        self.meta = Some(Meta::parse(&text, offset)?);
        Ok(())
    }

    /// Number of rows to allocate room for.
    fn row_limit(&self, what: &'static str, promised: Option<u64>, stride: usize) -> Result<usize> {
        // Each number with its comma takes at least two bytes.
        let possible = self.scanner.input().text_limit().map(|limit| limit / (2 * stride as u64) + 1);
        let count = match (promised, possible) {
            (Some(promised), Some(possible)) => promised.min(possible),
            (Some(count), None) | (None, Some(count)) => count,
            (None, None) => 0,
        };
        if count >= u64::from(u32::MAX) {
            return Err(Error::TooMany { what, count });
        }
        // Zeroed memory costs nothing until written. A false header must not abort the process, so
        // the allocation is tried first.
        if Vec::<u32>::new().try_reserve_exact(count as usize * 4).is_err() {
            return Err(Error::NoMemory { what, count });
        }
        Ok(count as usize)
    }

    /// Returns to the start of a list that has more rows than the header counts. Returns the number
    /// of rows found, which takes precedence.
    fn recounted(&mut self, section: &'static str, begin: u64, end: SectionEnd) -> Result<Option<u64>> {
        if end.surplus_count == 0 {
            return Ok(None);
        }
        let found = (end.row_count + end.surplus_count) as u64;
        if !self.scanner.can_seek() {
            return Err(Error::MoreThanPromised { section, promised: end.row_count as u64, found });
        }
        self.scanner.seek(begin)?;
        Ok(Some(found))
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

    pub(super) fn nodes(&mut self) -> Result<()> {
        let promised = self.meta()?.node_count;
        let begin = self.scanner.offset();
        let mut end = self.node_rows(promised)?;
        if let Some(found) = self.recounted("nodes", begin, end)? {
            end = self.node_rows(Some(found))?;
        }
        // Edges could not name the last nodes; that would look like damage.
        if end.row_count as u64 >= MOST_NODES {
            return Err(Error::TooMany { what: "nodes", count: end.row_count as u64 });
        }
        self.rows_ended("nodes", end, promised);
        Ok(())
    }

    fn node_rows(&mut self, promised: Option<u64>) -> Result<SectionEnd> {
        let meta = self.meta()?;
        self.scanner.expect(b'[', "a list")?;
        let limit = self.row_limit("nodes", promised, meta.node.stride)?;
        let has_trace = meta.trace_function_count > 0 && meta.node.trace_node_id.is_some();
        let mut nodes = NodeColumns::with_rows(limit, has_trace);
        // One more entry: the counts become the bounds of each node's edges.
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
        self.nodes = Some((nodes, edge_counts));
        Ok(end)
    }

    pub(super) fn edges(&mut self) -> Result<()> {
        let promised = self.meta()?.edge_count;
        let begin = self.scanner.offset();
        let mut end = self.edge_rows(promised)?;
        if let Some(found) = self.recounted("edges", begin, end)? {
            end = self.edge_rows(Some(found))?;
        }
        self.edges_truncated = end.is_truncated;
        self.rows_ended("edges", end, promised);
        Ok(())
    }

    fn edge_rows(&mut self, promised: Option<u64>) -> Result<SectionEnd> {
        let meta = self.meta()?;
        self.scanner.expect(b'[', "a list")?;
        let limit = self.row_limit("edges", promised, meta.edge.stride)?;
        let mut names = EdgeNames::zeros(limit);
        let mut words = vec![0; limit];
        let wide = WideNames::default();
        let filling = EdgeFilling::new(meta.edge, meta.edge_kinds(), meta.node.stride);
        let rows = EdgeRows { names: names.rows(&wide), words: &mut words, filling: &filling };
        let progress = self.options.progress;
        let end = read_rows(&mut self.scanner, "edges", meta.edge.stride, rows, self.thread_count, progress)?;
        names.take_wide(wide);
        if end.row_count < limit {
            names.truncate(end.row_count);
            words.truncate(end.row_count);
            words.shrink_to_fit();
        }
        self.edges = Some((names, words));
        Ok(end)
    }

    pub(super) fn strings(&mut self) -> Result<()> {
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

    /// Calls `row` for each row of a list of unknown length.
    fn each_row(&mut self, section: &'static str, stride: usize, mut row: impl FnMut(&[u64])) -> Result<()> {
        self.scanner.expect(b'[', "a list")?;
        let (mut block, mut numbers, mut values) = (Block::default(), Numbers::default(), Vec::new());
        let mut row_count = 0;
        loop {
            let taken = self.scanner.rows(stride, &mut block)?;
            // Some lists hold -1 for a missing value; like DevTools, the reader ignores the sign.
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

    pub(super) fn locations(&mut self) -> Result<()> {
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
            // A position that is not the start of a node belongs to no node.
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

    pub(super) fn trace_functions(&mut self) -> Result<()> {
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

    pub(super) fn trace_tree(&mut self) -> Result<()> {
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

    pub(super) fn samples(&mut self) -> Result<()> {
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
}
