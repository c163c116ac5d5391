//! Reader of a snapshot, whose members may be in any order.

use std::io::Read;
use std::path::Path;

use heapr_graph::Graph;

use crate::format::allocation_trace::AllocationTrace;
use crate::format::input::Input;
use crate::format::locations::{Location, Locations};
use crate::format::scanner::Scanner;
use crate::format::{EdgeNames, KIND_BITS, Meta, NodeColumns, Problem, Strings};
use crate::{Error, Result, Snapshot};

/// Options for reading.
pub struct ReadOptions<'a> {
    /// Number of decoding threads; 0 stands for the machine's parallelism, at most 8.
    pub thread_count: usize,
    /// Callback for progress: bytes read and, if known, the length of the file.
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

impl Snapshot {
    /// Reads a file; `-` is standard input. Compression (gzip, xz, zstd) and archives (tar, zip)
    /// are recognised.
    pub fn open(path: &Path, options: &ReadOptions<'_>) -> Result<Self> {
        let open = || Input::open(path).map_err(|source| Error::Io { offset: 0, source });
        match Reader::new(open()?, options).read() {
            // A compressed file is read once, in order, unless its header counts too few rows.
            Err(Error::MoreThanPromised { .. }) if path.is_file() => {
                let mut reader = Reader::new(open()?, options);
                reader.scanner.make_seekable()?;
                reader.read()
            }
            read => read,
        }
    }

    /// Reads from any reader.
    pub fn read(reader: impl Read + Send + 'static, options: &ReadOptions<'_>) -> Result<Self> {
        let input = Input::stream(reader, None).map_err(|source| Error::Io { offset: 0, source })?;
        Reader::new(input, options).read()
    }
}

pub(super) struct Reader<'a> {
    pub(super) scanner: Scanner,
    pub(super) options: &'a ReadOptions<'a>,
    pub(super) thread_count: usize,
    pub(super) problems: Vec<Problem>,
    pub(super) meta: Option<Meta>,
    pub(super) nodes: Option<(NodeColumns, Vec<u32>)>,
    pub(super) edges: Option<(EdgeNames, Vec<u32>)>,
    pub(super) edges_truncated: bool,
    pub(super) strings: Option<Strings>,
    pub(super) locations: Vec<(u64, Location)>,
    pub(super) trace: AllocationTrace,
    pub(super) seen: Vec<Vec<u8>>,
    /// Members before the header: name, and offset of the value.
    pub(super) deferred: Vec<(Vec<u8>, u64)>,
    pub(super) is_ended: bool,
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

    /// Reads the members up to the end of the object.
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
                    // Passed text is gone: reading starts again with a copy that can be read from
                    // any offset.
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

    /// Whether a member must be read after the header, which describes its numbers.
    fn must_wait(&self, name: &[u8]) -> bool {
        let needs_meta: [&[u8]; 6] =
            [b"nodes", b"edges", b"locations", b"trace_function_infos", b"trace_tree", b"samples"];
        match &self.meta {
            None => needs_meta.contains(&name),
            // Without counts, the columns are sized by the length of the file.
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

    pub(super) fn meta(&self) -> Result<Meta> {
        self.meta.clone().ok_or(Error::NoMember { name: "snapshot" })
    }

    /// Handles a missing member: an error, unless the file is truncated.
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
        let (edge_names, words) = match self.edges.take() {
            Some(edges) => edges,
            None => {
                self.missing("edges")?;
                self.edges_truncated = true;
                (EdgeNames::default(), Vec::new())
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
        let found = words.len() as u64;
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
        let graph = Graph::tagged(first_edge, words, KIND_BITS)?;
        let locations = self.sorted_locations(nodes.count());
        let has_trace = meta.trace_function_count > 0 || !self.trace.samples.is_empty();
        let mut snapshot = Snapshot {
            meta,
            nodes,
            edge_names,
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

/// Replaces the counts by the sums of the preceding ones. Returns the sum of all.
fn counts_to_borders(counts: &mut [u32]) -> u64 {
    let mut sum = 0u64;
    for slot in counts {
        let count = *slot;
        // The returned sum reveals an overflow of 32 bits; until then any bound will do.
        *slot = u32::try_from(sum).unwrap_or(u32::MAX);
        sum += u64::from(count);
    }
    sum
}
