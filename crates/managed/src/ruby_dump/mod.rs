//! Heaps of Ruby from the files of `ObjectSpace.dump_all`: one JSON object a line.
//!
//! ```text
//!  {"type":"ROOT", "root":"vm", "references":["0x7f…", …]}
//!  {"address":"0x7f…", "type":"HASH", "class":"0x7f…", "references":[…], "memsize":192, …}
//! ```
//! The file has no names of constants, variables and instance variables. A reference is therefore
//! named by the class that it leads to: `class Event: (Hash)`.

mod kinds;
mod lines;
mod naming;
mod objects;
mod reach;
mod snapshot;

use std::io::{self, Read};

use heapr_table::quantity::plural;

use crate::dump_error::DumpError;
use crate::dumped_heap::DumpedHeap;
use crate::request::Contents;
use objects::Objects;
pub(crate) use snapshot::is_of_ruby;

/// Number of bytes from which a dump of Ruby is recognised.
pub const RUBY_BEGINNING_BYTES: usize = 32;
/// Beginnings of the lines of a dump. V8's snapshots begin with another member.
const BEGINNINGS: [&[u8]; 2] = [b"{\"type\":\"", b"{\"address\":\"0x"];

/// Whether an unpacked file that begins so is a dump of Ruby.
#[must_use]
pub fn is_ruby_dump(beginning: &[u8]) -> bool {
    BEGINNINGS.iter().any(|start| beginning.starts_with(start))
}

/// Reads a dump of Ruby. `open` opens the unpacked dump at its beginning.
///
/// # Errors
/// A dump that cannot be read, with the offset.
pub fn read_ruby_dump(
    open: &dyn Fn() -> io::Result<Box<dyn Read + Send>>,
    contents: Contents,
) -> Result<DumpedHeap, DumpError> {
    let reader = open().map_err(|source| DumpError::Io { offset: 0, source })?;
    let objects = Objects::read(reader, contents == Contents::Strings)?;
    let (notes, cut_at) = (notes(&objects), objects.cut_at);
    let snapshot = snapshot::build(objects)?;
    Ok(DumpedHeap { snapshot, notes, cut_at })
}

/// Returns facts on a dump that its reader should know.
fn notes(objects: &Objects) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(offset) = objects.cut_at {
        notes.push(format!("the dump is cut at offset {offset}: what came before it is shown"));
    }
    if objects.repeated_count > 0 {
        notes.push(format!("{} objects are in the dump twice: the first counts", objects.repeated_count));
    }
    if let Some(offset) = objects.first_unreadable {
        let lines = plural(objects.unreadable_count, "unreadable line");
        notes.push(format!("the dump has {lines}, the first at offset {offset}: what they say is left out"));
    }
    if objects.has_no_roots() {
        notes.push(
            "the dump has no roots (ObjectSpace.dump_all writes them): nothing shows what holds objects"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests;
