//! Files of events (`.nettrace`) that a tool recorded while a .NET told its heap.

use std::io::Read;

use super::live_graph;
use super::stream::Stream;
use super::walk::Walk;
use crate::dump_error::Result;
use crate::dumped_heap::DumpedHeap;

/// Beginning of a file.
const MAGIC: &[u8] = b"Nettrace";

/// Whether an unpacked file that begins so has events of .NET.
#[must_use]
pub fn is_nettrace(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC)
}

/// Reads the first heap of a file of events.
///
/// # Errors
/// A file that cannot be read, with the offset, or that has no whole heap.
pub fn read_nettrace(reader: impl Read) -> Result<DumpedHeap> {
    let mut walk = Walk::default();
    Stream::begin(reader)?.read(|event| walk.event(event))?;
    walk.check()?;
    let snapshot = live_graph::build(&mut walk, &[])?.snapshot(".NET, nettrace")?;
    Ok(DumpedHeap { snapshot, notes: Vec::new(), cut_at: None })
}
