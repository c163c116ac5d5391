//! Parts of a dump that threads read at the same time.
//!
//! ```text
//!  names, classes | segment 1 MiB | segment | segment | segment | ...
//!  one thread, up to the first instance     | thread 1     | thread 2
//! ```
//! HotSpot divides the heap into records whose lengths are known, so their offsets are found
//! without reading them. A dump that is packed, or of one record, is one part.

use std::io::{self, Read};
use std::ops::Range;

use super::census::Census;
use super::classes::Class;
use super::graph::Objects;
use super::input::Input;
use super::records::{Walked, header, walk, walk_range};
use crate::dump_error::{DumpError, Result};

/// Opens the unpacked dump at an offset. `None`: it can be opened at its beginning only.
pub type OpenDump<'a> = dyn Fn(u64) -> io::Result<Option<Box<dyn Read + Send>>> + Sync + 'a;

/// Tag of a record of a part of the heap.
const SEGMENT_TAG: u8 = 0x1c;
/// Bytes of a record before its contents.
const RECORD_BYTES: usize = 9;
/// Version of Android's dumps, which have classes among the instances.
const ANDROID: &str = "1.0.3";
/// Largest number of segments of a dump that threads share: each is opened once.
const SEGMENTS_MAX: usize = 1 << 20;
/// Largest number of segments that are read for the classes before the threads begin.
const CLASS_SEGMENTS_MAX: usize = 1 << 12;

/// Division of a dump into parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    pub(super) thread_count: usize,
    /// Smallest part that is worth a thread, in bytes.
    pub(super) least_bytes: u64,
}

impl Division {
    pub(super) fn of_machine() -> Self {
        let thread_count = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        Self { thread_count, least_bytes: 32 << 20 }
    }
}

/// A part of a dump, for the second reading.
#[derive(Debug, Clone)]
pub(super) struct Part {
    range: Range<u64>,
    /// Number of the first object.
    first_object: u32,
}

/// Opens a dump at an offset.
pub(super) fn open_at(open: &OpenDump<'_>, offset: u64) -> Result<Box<dyn Read + Send>> {
    let opened = open(offset).map_err(|source| DumpError::Io { offset, source })?;
    opened.ok_or_else(|| DumpError::Io { offset, source: io::ErrorKind::NotSeekable.into() })
}

/// First reading. Returns the parts for the second one, too.
pub(super) fn census(open: &OpenDump<'_>, division: Division) -> Result<(Census, Walked, Vec<Part>)> {
    let found = if division.thread_count > 1 { segments(open)? } else { None };
    let Some(Segments { version, id_bytes, head_begin, offsets, end }) = found else {
        return whole(open);
    };
    let mut census = Census::new();
    // Classes are known before the threads begin.
    let mut segments = offsets.iter().copied().take(CLASS_SEGMENTS_MAX);
    let Some(mut begin) = segments.next() else { return whole(open) };
    let mut walked = walk_range(open_at(open, head_begin)?, id_bytes, head_begin..begin, &mut census)?;
    for next in segments {
        if census.has_instances() {
            break;
        }
        let segment = open_at(open, begin)?.take(next - begin);
        walked = walk_range(segment, id_bytes, begin..next, &mut census)?;
        if walked.cut_at.is_some() {
            // Its contents go beyond its end, or the dump ends in it.
            drop(census);
            return whole(open);
        }
        begin = next;
    }
    let ranges = divide(&offsets, begin, end, division);
    let read = |range: &Range<u64>, census: &mut Census| {
        walk_range(open_at(open, range.start)?, id_bytes, range.clone(), census)
    };
    let (first, later) = ranges.split_first().ok_or(DumpError::NoObjects)?;
    let class_count = census.classes.len();
    let mut later_censuses: Vec<Census> = later.iter().map(|_| census.of_later_part()).collect();
    let (first_walked, later_walked) = std::thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = later
            .iter()
            .zip(&mut later_censuses)
            .map(|(range, census)| scope.spawn(move || read(range, census)))
            .collect();
        (read(first, &mut census), threads.into_iter().map(joined).collect::<Vec<_>>())
    });
    let has_more_classes =
        census.classes.len() > class_count || later_censuses.iter().any(|census| !census.classes.is_empty());
    if has_more_classes && !later.is_empty() {
        // What they say of instances is not known in each part.
        drop((census, later_censuses));
        return whole(open);
    }
    // The first part of the second reading has the head, too.
    let mut parts = vec![Part { range: head_begin..first.end, first_object: 0 }];
    let mut is_cut = false;
    let mut add = |read: Result<Walked>| -> Result<bool> {
        let part = read?;
        let was_cut = std::mem::replace(&mut is_cut, part.cut_at.is_some());
        if !was_cut {
            walked = part;
        }
        Ok(!was_cut)
    };
    add(first_walked)?;
    for ((read, range), next) in later_walked.into_iter().zip(later).zip(later_censuses) {
        // Nothing follows the end of a dump.
        if add(read)? {
            parts.push(Part { range: range.clone(), first_object: census.ids.len() as u32 });
            census.append(next)?;
        }
    }
    let walked = Walked { version, ..walked };
    Ok((census, walked, parts))
}

/// First reading by one thread.
fn whole(open: &OpenDump<'_>) -> Result<(Census, Walked, Vec<Part>)> {
    let mut census = Census::new();
    let walked = walk(open_at(open, 0)?, &mut census)?;
    Ok((census, walked, vec![Part { range: 0..u64::MAX, first_object: 0 }]))
}

/// Second reading: the references of all objects.
pub(super) fn objects<'a>(
    open: &OpenDump<'_>,
    census: &'a Census,
    classes: &'a [Class],
    walked: &Walked,
    parts: &[Part],
) -> Result<Objects<'a>> {
    let read = |part: &Part| -> Result<Objects<'a>> {
        let Range { start, end } = part.range;
        let mut objects = Objects::new(census, classes, walked.bytes, part.first_object)?;
        let reader = open_at(open, start)?;
        if start == 0 {
            walk(reader, &mut objects)?;
        } else {
            walk_range(reader, walked.id_bytes, start..end, &mut objects)?;
        }
        Ok(objects)
    };
    let (first, later) = parts.split_first().ok_or(DumpError::NoObjects)?;
    let mut all = std::thread::scope(|scope| {
        let read = &read;
        let threads: Vec<_> = later.iter().map(|part| scope.spawn(move || read(part))).collect();
        let first = read(first);
        std::iter::once(first).chain(threads.into_iter().map(joined)).collect::<Result<Vec<_>>>()
    })?
    .into_iter();
    let mut objects = all.next().ok_or(DumpError::NoObjects)?;
    for later in all {
        objects.append(later)?;
    }
    objects.finish();
    Ok(objects)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Facts of a dump of segments.
struct Segments {
    version: String,
    id_bytes: usize,
    /// Offset of the first record.
    head_begin: u64,
    /// Offset of the record of each segment.
    offsets: Vec<u64>,
    /// Offset behind the last one.
    end: u64,
}

/// Finds the segments of a dump. `None`: it is not of segments, or cannot be read from an offset.
fn segments(open: &OpenDump<'_>) -> Result<Option<Segments>> {
    let mut input = Input::new(open_at(open, 0)?);
    let version = header(&mut input)?;
    if version.ends_with(ANDROID) {
        return Ok(None);
    }
    let (id_bytes, head_begin) = (input.id_bytes, input.offset());
    let mut at = loop {
        let offset = input.offset();
        let found = (|| {
            let tag = input.byte()?;
            input.skip(4)?;
            let length = input.word()?;
            if tag != SEGMENT_TAG {
                input.skip(length.into())?;
            }
            Ok(tag)
        })();
        match found {
            Ok(SEGMENT_TAG) => break offset,
            // Of one record, or without any.
            Ok(0x0c) | Err(DumpError::Ends { .. }) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    };
    let mut offsets = Vec::new();
    loop {
        let opened = open(at).map_err(|source| DumpError::Io { offset: at, source })?;
        let Some(reader) = opened else { return Ok(None) };
        let mut record = Vec::with_capacity(RECORD_BYTES);
        let read = reader.take(RECORD_BYTES as u64).read_to_end(&mut record);
        read.map_err(|source| DumpError::Io { offset: at, source })?;
        let Some(&[tag, _, _, _, _, a, b, c, d]) = record.first_chunk::<RECORD_BYTES>() else { break };
        if tag != SEGMENT_TAG {
            break;
        }
        if offsets.len() >= SEGMENTS_MAX {
            return Ok(None);
        }
        offsets.push(at);
        at += RECORD_BYTES as u64 + u64::from(u32::from_be_bytes([a, b, c, d]));
    }
    Ok(Some(Segments { version, id_bytes, head_begin, offsets, end: at }))
}

/// Divides what begins at a segment into parts of about the same size.
fn divide(offsets: &[u64], begin: u64, end: u64, division: Division) -> Vec<Range<u64>> {
    let count = ((end - begin) / division.least_bytes.max(1)).clamp(1, division.thread_count as u64);
    let mut borders = vec![begin];
    for part in 1..count {
        let wanted = begin + (end - begin) / count * part;
        let next = offsets.partition_point(|&offset| offset < wanted);
        borders
            .extend(offsets.get(next).filter(|&&border| borders.last().is_some_and(|&last| border > last)));
    }
    borders.push(u64::MAX);
    borders.windows(2).map(|pair| pair[0]..pair[1]).collect()
}
