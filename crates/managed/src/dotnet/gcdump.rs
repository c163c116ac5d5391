//! Files of `dotnet-gcdump` and PerfView (`.gcdump`).
//!
//! ```text
//!  i32 20 "!FastSerialization.1"
//!  4  type "GCHeapDump"  4  type "Graphs.MemoryGraph"
//!    i64 bytes  i32 root  i32 count, types: text name, i32 size, text file
//!    i32 count, i32 place of each node  i32 length, nodes
//!  then addresses, and facts on the machine: these are not read
//!  node:  type * 2 + 1 if its size follows, size, number of references, each as a distance
//! ```

use std::io::Read;

use heapr_v8::NodeKind;

use super::objects::{Class, Objects};
use super::type_names::{is_collection, is_of_dotnet, readable};
use crate::dump::rows::Row;
use crate::dump_error::{DumpError, Result, fill};
use crate::dumped_heap::DumpedHeap;

/// Beginning of a file.
const MAGIC: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";
/// Number of bytes from which a file is recognised.
pub const GCDUMP_BEGINNING_BYTES: usize = 64;
/// Type of the whole, in the beginning.
const WHOLE: &[u8] = b"GCHeapDump";
const GRAPH: &str = "Graphs.MemoryGraph";
/// Largest length of a name in bytes.
const NAME_BYTES_MAX: u32 = 1 << 20;
/// Row of the file's own root.
const ROOTS: &str = "(roots)";
/// Types of items that have no references.
const NUMBERS: [&str; 13] = [
    "Byte", "SByte", "Char", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Single", "Double",
    "Boolean", "IntPtr",
];

const NULL: u8 = 1;
const BEGIN: u8 = 4;
const END: u8 = 6;

/// Whether an unpacked file that begins so is a `.gcdump`.
#[must_use]
pub fn is_gcdump(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC) && beginning.windows(WHOLE.len()).any(|window| window == WHOLE)
}

/// Reads a `.gcdump`.
///
/// # Errors
/// A file that cannot be read, with the offset.
pub fn read_gcdump(reader: impl Read) -> Result<DumpedHeap> {
    let mut file = File { reader, offset: 0 };
    file.begin()?;
    let graph = Graph::read(&mut file)?;
    let snapshot = graph.objects()?.snapshot(".NET, gcdump")?;
    Ok(DumpedHeap { snapshot, notes: Vec::new(), cut_at: None })
}

/// Values of a file, with the offset of the next one.
struct File<R> {
    reader: R,
    offset: u64,
}

/// Type of nodes.
struct NodeType {
    name: String,
    bytes: u32,
    file: String,
}

/// Graph of a file, as it is written.
struct Graph {
    root: u32,
    types: Vec<NodeType>,
    places: Vec<u32>,
    nodes: Vec<u8>,
    /// Offset of the nodes in the file.
    offset: u64,
}

impl<R: Read> File<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        fill(&mut self.reader, &mut self.offset, bytes)
    }

    fn word(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Bytes of a length, which does not allocate more than there is.
    fn bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(length.into()).read_to_end(&mut bytes);
        let read = read.map_err(|source| DumpError::Io { offset: self.offset, source })?;
        self.offset += read as u64;
        if read == length as usize { Ok(bytes) } else { Err(DumpError::Ends { offset: self.offset }) }
    }

    /// Text behind its length; -1 stands for none.
    fn text(&mut self) -> Result<String> {
        match self.word()? {
            u32::MAX => Ok(String::new()),
            length if length > NAME_BYTES_MAX => Err(DumpError::Overrun { offset: self.offset }),
            length => Ok(String::from_utf8_lossy(&self.bytes(length)?).into_owned()),
        }
    }

    fn tag(&mut self, wanted: u8) -> Result<()> {
        let mut tag = [0];
        self.fill(&mut tag)?;
        if tag[0] == wanted {
            Ok(())
        } else {
            Err(DumpError::UnknownPart { tag: tag[0], offset: self.offset - 1 })
        }
    }

    /// Begins an object: returns the oldest version of a reader that can read it, and its type.
    fn object(&mut self) -> Result<(u32, String)> {
        for tag in [BEGIN, BEGIN, NULL] {
            self.tag(tag)?;
        }
        let (_version, oldest) = (self.word()?, self.word()?);
        let name = self.text()?;
        self.tag(END)?;
        Ok((oldest, name))
    }

    /// Reads the beginning, up to the contents of the graph.
    fn begin(&mut self) -> Result<()> {
        let mut magic = [0; MAGIC.len()];
        self.fill(&mut magic)?;
        if magic != *MAGIC || self.object()?.1.as_bytes() != WHOLE {
            return Err(DumpError::NotGcdump);
        }
        let (oldest, name) = self.object()?;
        // A newer form has another part between the nodes and the addresses, and larger numbers.
        if oldest > 1 || name != GRAPH {
            return Err(DumpError::UnknownPart { tag: oldest as u8, offset: self.offset });
        }
        Ok(())
    }
}

impl Graph {
    fn read(file: &mut File<impl Read>) -> Result<Self> {
        let (_bytes, root) = (file.bytes(8)?, file.word()?);
        let mut types = Vec::new();
        for _ in 0..file.word()? {
            let (name, bytes, file) = (file.text()?, file.word()?, file.text()?);
            types.push(NodeType { name, bytes, file });
        }
        let count = file.word()?;
        if count >= u32::MAX / 4 {
            return Err(DumpError::Overrun { offset: file.offset });
        }
        let places = file.bytes(count * 4)?;
        let places = places.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
        let length = file.word()?;
        let offset = file.offset;
        let nodes = file.bytes(length)?;
        Ok(Self { root, types, places, nodes, offset })
    }

    /// Number at a place, which moves on: groups of 7 bits, highest first, with a sign.
    fn number(&self, at: &mut usize) -> Result<i32> {
        let mut value = 0_i32;
        for group in 0..5 {
            let byte = *self.nodes.get(*at).ok_or(DumpError::Overrun { offset: self.offset + *at as u64 })?;
            *at += 1;
            let bits = i32::from(byte & 0x7f);
            // The highest bit of the first group is the sign.
            value = if group == 0 { bits << 25 >> 25 } else { value << 7 | bits };
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DumpError::Overrun { offset: self.offset + *at as u64 })
    }

    fn objects(&self) -> Result<Objects> {
        if self.places.is_empty() {
            return Err(DumpError::NoObjects);
        }
        let at = |place: usize| DumpError::Overrun { offset: self.offset + place as u64 };
        let mut class_of = Vec::with_capacity(self.places.len());
        let mut own_bytes = Vec::with_capacity(self.places.len());
        let mut lists = Vec::with_capacity(self.places.len());
        for &place in &self.places {
            let mut place = place as usize;
            let kind = self.number(&mut place)?;
            let class =
                usize::try_from(kind >> 1).ok().filter(|&it| it < self.types.len()).ok_or(at(place))?;
            let bytes = if kind & 1 != 0 { self.number(&mut place)? as u32 } else { self.types[class].bytes };
            // A type without objects of its own has no size.
            own_bytes.push(if bytes == u32::MAX { 0 } else { bytes.into() });
            class_of.push(class as u32);
            lists.push(place);
        }
        let classes = self.types.iter().map(class).collect();
        let mut objects = Objects::new(classes, class_of, own_bytes)?;
        let (mut targets, mut sum) = (Vec::new(), 0_usize);
        for (object, mut place) in lists.into_iter().enumerate() {
            targets.clear();
            let count = self.number(&mut place)?;
            // Lists that share their bytes are not larger than all nodes together.
            sum += usize::try_from(count).map_err(|_| at(place))?;
            if sum > self.nodes.len() {
                return Err(at(place));
            }
            for _ in 0..count {
                let target = i64::from(self.number(&mut place)?) + object as i64;
                let target = u32::try_from(target).ok().filter(|&it| (it as usize) < self.places.len());
                targets.push(target.ok_or(at(place))?);
            }
            objects.push_edges(object, targets.iter().map(|&target| (target, None)))?;
        }
        if (self.root as usize) < self.places.len() {
            let (name, targets) = (ROOTS.to_owned(), vec![self.root]);
            objects.rows.push(Row { name, kind: NodeKind::NATIVE, is_owner: true, targets });
        }
        Ok(objects)
    }
}

/// Class of a type. Names in brackets are of roots.
fn class(known: &NodeType) -> Class {
    let is_root = known.name.starts_with('[');
    let name = if is_root { known.name.clone() } else { readable(&known.name) };
    // Some tools add the sizes of items: `System.Byte[] (NoPtrs,ElemSize=1)`.
    let bare = name.split(" (").next().unwrap_or(&name);
    let item = bare.strip_suffix("[]");
    let is_number =
        item.and_then(|item| item.strip_prefix("System.")).is_some_and(|item| NUMBERS.contains(&item));
    let file = known.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_of_dotnet = is_root
        || is_of_dotnet(&name)
        || is_of_dotnet(file)
        || file.starts_with("mscorlib")
        || item.is_some_and(is_of_dotnet);
    let is_store = !is_root && bare.ends_with(']') && !is_number;
    Class { is_store, is_collection: is_collection(&name), is_of_dotnet, name }
}
