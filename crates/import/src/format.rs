//! Table of the formats, with the function that recognises each and the one that reads it.

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::{dhat, heap_text, heaptrack, massif, pprof, v8_profile};

/// A format of another tool.
pub(crate) struct Format {
    /// Name of the tool.
    pub(crate) name: &'static str,
    /// True if a file with this beginning has the format.
    tells: fn(&[u8]) -> bool,
    /// Reads a file into the builder.
    pub(crate) read: fn(&mut Input<'_>, &mut TraceBuilder) -> Result<()>,
}

/// All formats, in the order in which they are tried: those with a distinctive text first.
const FORMATS: [Format; 9] = [
    Format { name: heaptrack::TOOL, tells: heaptrack::tells, read: heaptrack::read },
    Format { name: massif::TOOL, tells: massif::tells, read: massif::read },
    Format { name: dhat::TOOL, tells: dhat::tells, read: dhat::read },
    Format { name: heap_text::JEMALLOC, tells: heap_text::is_of_jemalloc, read: heap_text::read_jemalloc },
    Format {
        name: heap_text::GPERFTOOLS,
        tells: heap_text::is_of_gperftools,
        read: heap_text::read_gperftools,
    },
    Format { name: v8_profile::TOOL, tells: v8_profile::tells, read: v8_profile::read },
    Format { name: "memray", tells: is_of_memray, read: refuse_memray },
    Format { name: "lz4", tells: |start| start.starts_with(&[0x04, 0x22, 0x4d, 0x18]), read: refuse_memray },
    Format { name: pprof::TOOL, tells: pprof::tells, read: pprof::read },
];

impl Format {
    /// Finds the format of a file by its beginning.
    pub(crate) fn of(start: &[u8]) -> Option<&'static Self> {
        FORMATS.iter().find(|format| (format.tells)(start))
    }
}

fn is_of_memray(start: &[u8]) -> bool {
    start.starts_with(b"memray\0")
}

/// Refuses a capture of memray: the format is undocumented and changes with its versions.
fn refuse_memray(_: &mut Input<'_>, _: &mut TraceBuilder) -> Result<()> {
    Err(Error::Unusable {
        what: "this is a capture of memray, whose format is documented nowhere: ask memray itself (memray stats --json \
               FILE), or record the program by heapr (heapr run -- python3 …)"
            .to_owned(),
    })
}
