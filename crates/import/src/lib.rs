//! Files of other tools, opened as traces: every reader of traces can use them without special
//! code.
//!
//! ```text
//!  heaptrack ────────┐  events, as in a recording
//!  massif, DHAT ─────┤  amounts by stack, as in the summary of a recording
//!  pprof, jemalloc ──┼──> [`TraceBuilder`] ──> a `.heapr` file without a name ──> [`heapr_trace::Trace`]
//!  V8's profile ─────┘
//! ```
//! A file is recognised by its content, never by its name. Facts that a tool does not record are
//! unknown ([`heapr_trace::Untold`]), and a notice of the trace says so.
//!
//! Content is untrusted: memory is limited by the file's size, invalid lines are counted, and an
//! invalid file is refused with the offset.
#![forbid(unsafe_code)]

mod budget;
mod builder;
mod dhat;
mod error;
mod format;
mod heap_text;
mod heaptrack;
mod input;
mod locations;
mod massif;
mod pprof;
mod protobuf;
mod v8_profile;
mod valgrind_frame;

pub use error::{Error, Result};
/// Name that [`tool_of`] returns for a sampling profile of V8.
pub use v8_profile::TOOL as V8_PROFILE;

use std::path::Path;

use heapr_trace::{ReadAt as _, Trace};

use crate::builder::TraceBuilder;
use crate::format::Format;
use crate::input::Input;

/// First bytes of a trace.
const TRACE_MAGIC: &[u8] = b"HEAPRTRC";

/// Opens a trace, or a file of another tool as a trace.
///
/// # Errors
/// Returns an error if the file cannot be read, has an unknown format, or is invalid.
pub fn open(path: &Path) -> Result<Trace> {
    match recognised(path)? {
        None => Trace::open(path).map_err(|error| match error {
            heapr_trace::Error::NotATrace { found } => Error::Unknown { found },
            error => error.into(),
        }),
        Some((format, input)) => build(format, input),
    }
}

/// Name of the file's tool; `None` for a trace or an unknown format.
#[must_use]
pub fn tool_of(path: &Path) -> Option<&'static str> {
    Some(recognised(path).ok()??.0.name)
}

/// Opens the bytes of another tool's file as a trace.
///
/// # Errors
/// The errors of [`open`].
pub fn from_bytes(bytes: &[u8]) -> Result<Trace> {
    let input = Input::new(bytes, bytes.len() as u64, None)?;
    let format = Format::of(input.start()).ok_or_else(|| Error::unknown(bytes))?;
    build(format, input)
}

fn recognised(path: &Path) -> Result<Option<(&'static Format, Input<'static>)>> {
    let io = |source| Error::Io { action: "opening the file", source };
    let file = heapr_files::regular(path).map_err(io)?;
    let mut magic = [0; TRACE_MAGIC.len()];
    if file.read_at(&mut magic, 0).map_err(io)? == magic.len() && magic == TRACE_MAGIC {
        return Ok(None);
    }
    let size = file.size_bytes().map_err(io)?;
    let input = Input::new(file, size, Some(path))?;
    Ok(Format::of(input.start()).map(|format| (format, input)))
}

fn build(format: &Format, mut input: Input<'_>) -> Result<Trace> {
    let mut builder = TraceBuilder::new(format.name, input.budget())?;
    (format.read)(&mut input, &mut builder)?;
    if input.is_cut {
        builder.note("the file ends in the middle: what follows is missing".to_owned());
    }
    builder.finish()
}
