//! Records of a heap dump of Java, of HotSpot's and Android's kinds.
//!
//! ```text
//!  JAVA PROFILE 1.0.2\0  bytes of an id (u4)  time (u8)
//!  tag (u1)  time (u4)  length (u4)  contents        UTF8, LOAD CLASS, FRAME, TRACE ...
//!  0x0c or 0x1c, whose contents are parts: tag (u1), contents of a length that the tag decides
//! ```
//! Old dumps have one record for the whole heap. Its length is 0 or, beyond 4 GiB, the rest of a
//! division by 2^32.

use std::io::Read;
use std::ops::Range;

use super::input::{Input, TAKE_MAX, number};
use crate::dump_error::{DumpError, Result};

/// Largest length of a name; the rest of a longer one is left out.
const NAME_MAX: u32 = 1 << 12;
/// Largest number of frames of a trace; the rest of a longer one is left out.
const FRAMES_MAX: u32 = 1 << 16;
/// Beginning of all dumps.
pub(super) const BEGINNING: &[u8] = b"JAVA PROFILE 1.0";
/// Largest length of the beginning, with its version.
const BEGINNING_MAX: usize = 32;

/// Kind of a value in a field or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Object,
    Boolean,
    Char,
    Float,
    Double,
    Byte,
    Short,
    Int,
    Long,
}

impl Type {
    fn of(number: u8, offset: u64) -> Result<Self> {
        Ok(match number {
            2 => Self::Object,
            4 => Self::Boolean,
            5 => Self::Char,
            6 => Self::Float,
            7 => Self::Double,
            8 => Self::Byte,
            9 => Self::Short,
            10 => Self::Int,
            11 => Self::Long,
            kind => return Err(DumpError::UnknownType { kind, offset }),
        })
    }

    /// Bytes of a value in the file.
    pub(super) fn bytes(self, id_bytes: usize) -> usize {
        match self {
            Self::Object => id_bytes,
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }

    /// Name in Java.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "java.lang.Object",
            Self::Boolean => "boolean",
            Self::Char => "char",
            Self::Float => "float",
            Self::Double => "double",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
        }
    }
}

/// Kind of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RootTag {
    SystemClass,
    JniGlobal,
    /// Local reference of native code, of a thread.
    JniLocal,
    /// Local variable of a frame of a thread.
    Frame,
    /// Native stack or block of a thread.
    Thread,
    Monitor,
    /// The thread's object.
    ThreadObject,
    InternedString,
    Finalizing,
    Debugger,
    Internal,
    Unknown,
}

/// A reference from outside of the heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootRecord {
    pub(super) tag: RootTag,
    pub(super) id: u64,
    /// Serial number of the thread.
    pub(super) thread: u32,
    /// Position of the frame in the thread's trace, or serial number of the trace.
    pub(super) number: u32,
}

/// A class, as the dump describes it.
#[derive(Debug, Clone, Default)]
pub(super) struct ClassRecord {
    pub(super) id: u64,
    pub(super) super_id: u64,
    pub(super) loader: u64,
    pub(super) signers: u64,
    pub(super) domain: u64,
    pub(super) instance_bytes: u32,
    /// Id of the name and value of each static reference.
    pub(super) statics: Vec<(u64, u64)>,
    /// Bytes of all static fields.
    pub(super) static_bytes: u64,
    /// Id of the name and type of each field of its own.
    pub(super) fields: Vec<(u64, Type)>,
}

/// A frame of a trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRecord {
    pub(super) method: u64,
    pub(super) source: u64,
    pub(super) class_serial: u32,
    pub(super) line: i32,
}

/// An array without its items.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrayRecord {
    pub(super) id: u64,
    /// Class of an array of objects; 0 otherwise.
    pub(super) class: u64,
    pub(super) kind: Type,
    pub(super) count: u32,
}

/// Receiver of the records of a dump.
pub(super) trait Visitor {
    fn name(&mut self, _id: u64, _text: &[u8]) {}
    fn loaded(&mut self, _serial: u32, _class: u64, _name: u64) {}
    fn frame(&mut self, _id: u64, _frame: FrameRecord) {}
    fn trace(&mut self, _serial: u32, _thread: u32, _frames: Vec<u64>) {}
    fn root(&mut self, _root: RootRecord) {}
    /// Receives the offset of a record of objects, before these.
    fn segment(&mut self, _offset: u64) {}
    fn class(&mut self, class: ClassRecord) -> Result<()>;
    fn instance(&mut self, id: u64, class: u64, values: &[u8]) -> Result<()>;
    /// Receives an array. Returns how many bytes of its contents are wanted.
    fn array(&mut self, array: ArrayRecord) -> Result<u64>;
    /// Whether the rest of the dump is not wanted.
    fn is_done(&self) -> bool {
        false
    }
    /// Receives wanted contents, whole items at a time.
    fn contents(&mut self, _array: ArrayRecord, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Facts on a dump that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Version after "JAVA PROFILE ".
    pub(super) version: String,
    pub(super) id_bytes: usize,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// Offset of the end of a dump that is cut.
    pub(super) cut_at: Option<u64>,
}

/// Reads a whole dump. A dump that is cut ends where it is cut.
pub(super) fn walk(reader: impl Read, visitor: &mut impl Visitor) -> Result<Walked> {
    let mut input = Input::new(reader);
    let version = header(&mut input)?;
    let mut walked = Walked { version, id_bytes: input.id_bytes, bytes: 0, cut_at: None };
    walked.cut_at = cut_at(records(&mut input, visitor, u64::MAX))?;
    walked.bytes = input.offset();
    Ok(walked)
}

/// Reads the records that begin in a range of a dump. `reader` begins at the first of them.
pub(super) fn walk_range(
    reader: impl Read,
    id_bytes: usize,
    range: Range<u64>,
    visitor: &mut impl Visitor,
) -> Result<Walked> {
    let mut input = Input::at(reader, range.start, id_bytes);
    let cut_at = cut_at(records(&mut input, visitor, range.end))?;
    Ok(Walked { version: String::new(), id_bytes, bytes: input.offset(), cut_at })
}

fn cut_at(read: Result<()>) -> Result<Option<u64>> {
    match read {
        Err(DumpError::Ends { offset }) => Ok(Some(offset)),
        other => other.map(|()| None),
    }
}

pub(super) fn header<R: Read>(input: &mut Input<R>) -> Result<String> {
    let mut text = Vec::new();
    while text.len() < BEGINNING_MAX {
        match input.byte() {
            Ok(0) => break,
            Ok(byte) => text.push(byte),
            Err(DumpError::Ends { .. }) => return Err(DumpError::NotHprof),
            Err(error) => return Err(error),
        }
    }
    if !text.starts_with(BEGINNING) {
        return Err(DumpError::NotHprof);
    }
    let id_bytes = input.word()?;
    if !matches!(id_bytes, 4 | 8) {
        return Err(DumpError::IdBytes { id_bytes });
    }
    input.id_bytes = id_bytes as usize;
    input.skip(8)?;
    Ok(String::from_utf8_lossy(&text[b"JAVA PROFILE ".len()..]).into_owned())
}

fn records<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor, end: u64) -> Result<()> {
    while !visitor.is_done() && input.offset() < end && !input.is_at_end()? {
        let offset = input.offset();
        let tag = input.byte()?;
        input.skip(4)?;
        let length = input.word()?;
        let id_bytes = input.id_bytes as u32;
        let start = input.offset();
        match tag {
            0x01 if length >= id_bytes => {
                let id = input.id()?;
                let text = input.take((length - id_bytes).min(NAME_MAX) as usize)?;
                visitor.name(id, text);
            }
            0x02 if length >= 8 + 2 * id_bytes => {
                let serial = input.word()?;
                let class = input.id()?;
                input.skip(4)?;
                let name = input.id()?;
                visitor.loaded(serial, class, name);
            }
            0x04 if length >= 8 + 4 * id_bytes => frame(input, visitor)?,
            0x05 if length >= 12 => trace(input, length, visitor)?,
            0x0c | 0x1c => {
                visitor.segment(offset);
                parts(input, tag, length, visitor)?;
                continue;
            }
            _ => {}
        }
        let taken = input.offset() - start;
        input.skip(u64::from(length).saturating_sub(taken))?;
    }
    Ok(())
}

fn frame<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor) -> Result<()> {
    let id = input.id()?;
    let method = input.id()?;
    let _signature = input.id()?;
    let source = input.id()?;
    let class_serial = input.word()?;
    let line = input.word()?.cast_signed();
    visitor.frame(id, FrameRecord { method, source, class_serial, line });
    Ok(())
}

fn trace<R: Read>(input: &mut Input<R>, length: u32, visitor: &mut impl Visitor) -> Result<()> {
    let (serial, thread, count) = (input.word()?, input.word()?, input.word()?);
    let most = (length - 12) / input.id_bytes as u32;
    let mut frames = Vec::new();
    for _ in 0..count.min(most).min(FRAMES_MAX) {
        frames.push(input.id()?);
    }
    visitor.trace(serial, thread, frames);
    Ok(())
}

/// Reads the parts of a heap dump.
fn parts<R: Read>(input: &mut Input<R>, tag: u8, length: u32, visitor: &mut impl Visitor) -> Result<()> {
    let is_whole_heap = tag == 0x0c;
    let goes_on = is_whole_heap && length == 0;
    let mut end = input.offset() + u64::from(length);
    while goes_on || input.offset() < end {
        if goes_on && input.is_at_end()? {
            return Ok(());
        }
        part(input, visitor)?;
        if visitor.is_done() {
            return Ok(());
        }
        while !goes_on && input.offset() > end {
            // The length of the record of a whole heap wraps at 4 GiB.
            if !is_whole_heap {
                return Err(DumpError::Overrun { offset: input.offset() });
            }
            end += 1 << 32;
        }
    }
    Ok(())
}

fn part<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor) -> Result<()> {
    let offset = input.offset();
    let tag = input.byte()?;
    // Root with its id alone, or with numbers after the id.
    let root = |tag, numbers| Some((tag, numbers));
    let found = match tag {
        0x20 => return class(input, visitor),
        0x21 => return instance(input, visitor),
        0x22 => return object_array(input, visitor),
        0x23 => return primitive_array(input, visitor, true),
        0xc3 => return primitive_array(input, visitor, false),
        // The name of the heap that follows, in dumps of Android.
        0xfe => {
            input.skip(4)?;
            input.id()?;
            return Ok(());
        }
        0x01 => {
            let id = input.id()?;
            input.id()?;
            visitor.root(RootRecord { tag: RootTag::JniGlobal, id, thread: 0, number: 0 });
            return Ok(());
        }
        0x02 => root(RootTag::JniLocal, 2),
        0x03 => root(RootTag::Frame, 2),
        0x04 => root(RootTag::Thread, 1),
        0x05 => root(RootTag::SystemClass, 0),
        0x06 => root(RootTag::Thread, 1),
        0x07 => root(RootTag::Monitor, 0),
        0x08 => root(RootTag::ThreadObject, 2),
        0x89 => root(RootTag::InternedString, 0),
        0x8a => root(RootTag::Finalizing, 0),
        0x8b => root(RootTag::Debugger, 0),
        0x8d => root(RootTag::Internal, 0),
        0x8e => root(RootTag::JniLocal, 2),
        // An object that no reference leads to.
        0x90 => None,
        0xff => root(RootTag::Unknown, 0),
        tag => return Err(DumpError::UnknownPart { tag, offset }),
    };
    let id = input.id()?;
    if let Some((tag, count)) = found {
        let thread = if count > 0 { input.word()? } else { 0 };
        let number = if count > 1 { input.word()? } else { 0 };
        visitor.root(RootRecord { tag, id, thread, number });
    }
    Ok(())
}

fn class<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor) -> Result<()> {
    let id = input.id()?;
    input.skip(4)?;
    let (super_id, loader, signers, domain) = (input.id()?, input.id()?, input.id()?, input.id()?);
    input.skip(2 * input.id_bytes as u64)?;
    let instance_bytes = input.word()?;
    for _ in 0..input.half()? {
        input.skip(2)?;
        let kind = typed(input)?;
        input.skip(kind.bytes(input.id_bytes) as u64)?;
    }
    let (mut statics, mut static_bytes) = (Vec::new(), 0);
    for _ in 0..input.half()? {
        let name = input.id()?;
        let kind = typed(input)?;
        let bytes = kind.bytes(input.id_bytes);
        let value = number(input.take(bytes)?);
        static_bytes += bytes as u64;
        if kind == Type::Object && value != 0 {
            statics.push((name, value));
        }
    }
    let mut fields = Vec::new();
    for _ in 0..input.half()? {
        let name = input.id()?;
        fields.push((name, typed(input)?));
    }
    visitor.class(ClassRecord {
        id,
        super_id,
        loader,
        signers,
        domain,
        instance_bytes,
        statics,
        static_bytes,
        fields,
    })
}

fn typed<R: Read>(input: &mut Input<R>) -> Result<Type> {
    let kind = input.byte()?;
    Type::of(kind, input.offset())
}

fn instance<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor) -> Result<()> {
    let of_id = input.id_bytes;
    // Id, serial number of the trace, class, bytes of the values.
    let begin = input.take(2 * of_id + 8)?;
    let id = number(&begin[..of_id]);
    let class = number(&begin[of_id + 4..2 * of_id + 4]);
    let count = number(&begin[2 * of_id + 4..2 * of_id + 8]) as u32;
    let values = input.take(count as usize)?;
    visitor.instance(id, class, values)
}

fn object_array<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor) -> Result<()> {
    let of_id = input.id_bytes;
    // Id, serial number of the trace, number of items, class.
    let begin = input.take(2 * of_id + 8)?;
    let id = number(&begin[..of_id]);
    let count = number(&begin[of_id + 4..of_id + 8]) as u32;
    let class = number(&begin[of_id + 8..2 * of_id + 8]);
    contents(input, visitor, ArrayRecord { id, class, kind: Type::Object, count })
}

fn primitive_array<R: Read>(
    input: &mut Input<R>,
    visitor: &mut impl Visitor,
    has_contents: bool,
) -> Result<()> {
    let of_id = input.id_bytes;
    // Id, serial number of the trace, number of items, type.
    let begin = input.take(of_id + 9)?;
    let id = number(&begin[..of_id]);
    let count = number(&begin[of_id + 4..of_id + 8]) as u32;
    let kind = begin[of_id + 8];
    let kind = Type::of(kind, input.offset())?;
    let array = ArrayRecord { id, class: 0, kind, count };
    if has_contents {
        return contents(input, visitor, array);
    }
    visitor.array(array).map(drop)
}

fn contents<R: Read>(input: &mut Input<R>, visitor: &mut impl Visitor, array: ArrayRecord) -> Result<()> {
    let of_one = array.kind.bytes(input.id_bytes) as u64;
    let bytes = u64::from(array.count) * of_one;
    let mut wanted = visitor.array(array)?.min(bytes) / of_one * of_one;
    let rest = bytes - wanted;
    while wanted > 0 {
        let piece = wanted.min(TAKE_MAX as u64 / 8 * 8);
        visitor.contents(array, input.take(piece as usize)?)?;
        wanted -= piece;
    }
    input.skip(rest)
}
