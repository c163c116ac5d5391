//! Native memory of direct buffers: a node of its own, which the buffer holds.
//!
//! A dump has the address and the size of the memory as plain fields. Buffers that only show the
//! memory of another one refer to that one (`att`), and hold no memory themselves. Android's memory
//! is an array of Java (`memoryRef`), which the dump has anyway.

use heapr_v8::Strings;
use rustc_hash::FxHashMap;

use super::input::number;
use super::records::Type;
use crate::dump_error::Result;

/// Class of all direct buffers of bytes, which own native memory or show it.
const BUFFER: &str = "java.nio.DirectByteBuffer";

/// Positions of a buffer's fields in its record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BufferFields {
    is_direct: bool,
    /// Whether the memory is an array of Java, as Android makes it: the array has the bytes.
    is_array: bool,
    address: Option<usize>,
    capacity: Option<usize>,
    /// Buffer whose memory this one shows.
    shown: Option<usize>,
    /// Descriptor of a mapped file.
    file: Option<usize>,
}

impl BufferFields {
    /// Takes notice of a class, as a buffer's own or as a superclass.
    pub(super) fn class(&mut self, name: &str) {
        self.is_direct |= name == BUFFER;
    }

    /// Takes notice of a field.
    pub(super) fn field(&mut self, declared_by: &str, name: &str, kind: Type, offset: usize) {
        self.is_array |= (declared_by, name) == (BUFFER, "memoryRef");
        let field = match (declared_by, name, kind) {
            ("java.nio.Buffer", "address", Type::Long) => &mut self.address,
            ("java.nio.Buffer", "capacity", Type::Int) => &mut self.capacity,
            (BUFFER, "att", Type::Object) => &mut self.shown,
            ("java.nio.MappedByteBuffer", "fd", Type::Object) => &mut self.file,
            _ => return,
        };
        *field = Some(offset);
    }

    /// Fields of a class whose instances are direct buffers.
    pub(super) fn of_direct(self) -> Option<Self> {
        let is_known = self.address.is_some() && self.capacity.is_some();
        (self.is_direct && !self.is_array && is_known).then_some(self)
    }

    /// Returns the memory that an instance holds itself.
    pub(super) fn memory(self, values: &[u8], id_bytes: usize) -> Option<NativeMemory> {
        let value = |offset: Option<usize>, bytes: usize| {
            let offset = offset?;
            Some(number(values.get(offset..offset + bytes)?))
        };
        let address = value(self.address, 8)?;
        let capacity_bytes = value(self.capacity, 4)?;
        let shows_another = value(self.shown, id_bytes).is_some_and(|buffer| buffer != 0);
        let is_file = value(self.file, id_bytes).is_some_and(|file| file != 0);
        let is_real = address != 0 && (1..1 << 31).contains(&capacity_bytes) && !shows_another;
        is_real.then_some(NativeMemory { address_avma: address, bytes: capacity_bytes, is_file })
    }
}

/// Native memory that a buffer holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct NativeMemory {
    address_avma: u64,
    pub(super) bytes: u64,
    is_file: bool,
}

impl NativeMemory {
    /// Name of its node.
    pub(super) fn name(self) -> &'static str {
        if self.is_file { "mapped file" } else { "native memory" }
    }
}

/// Native memory of all buffers, each once.
#[derive(Debug, Default)]
pub(super) struct NativeMemories {
    pub(super) all: Vec<NativeMemory>,
    /// Number of the name of the references to each memory.
    reference_names: Vec<u32>,
    numbers: FxHashMap<u64, u32>,
}

impl NativeMemories {
    /// Returns the number of a memory, which is new or known by its address, and the number of the
    /// name of references to it. The name has the address, by which a recording knows the block.
    pub(super) fn number(&mut self, memory: NativeMemory, strings: &mut Strings) -> Result<(u32, u32)> {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(memory.address_avma).or_insert(next);
        match self.all.get_mut(number as usize) {
            None => {
                let name = format!("(memory at {:#x})", memory.address_avma);
                self.reference_names.push(strings.push(name.as_bytes())?);
                self.all.push(memory);
            }
            Some(known) => known.bytes = known.bytes.max(memory.bytes),
        }
        Ok((number, self.reference_names[number as usize]))
    }

    /// All memories, each with the number of the name of references to it.
    pub(super) fn with_names(&self) -> impl Iterator<Item = (NativeMemory, u32)> {
        self.all.iter().copied().zip(self.reference_names.iter().copied())
    }

    /// Bytes of each memory, without those that one which begins before it has, too.
    pub(super) fn own_bytes(&self) -> Vec<u64> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_unstable_by_key(|&number| self.all[number].address_avma);
        let mut own = vec![0; self.all.len()];
        let mut end_avma = 0_u64;
        for number in order {
            let memory = self.all[number];
            let its_end_avma = memory.address_avma.saturating_add(memory.bytes);
            own[number] = its_end_avma.saturating_sub(end_avma.max(memory.address_avma));
            end_avma = end_avma.max(its_end_avma);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> BufferFields {
        let mut fields = BufferFields::default();
        fields.field(BUFFER, "att", Type::Object, 0);
        fields.field("java.nio.MappedByteBuffer", "fd", Type::Object, 4);
        fields.field("java.nio.Buffer", "address", Type::Long, 8);
        fields.field("java.nio.Buffer", "capacity", Type::Int, 16);
        fields.field("app.Buffer", "capacity", Type::Int, 0);
        fields.class(BUFFER);
        fields
    }

    fn values(shown: u32, file: u32, address: u64, capacity: u32) -> Vec<u8> {
        [&shown.to_be_bytes()[..], &file.to_be_bytes(), &address.to_be_bytes(), &capacity.to_be_bytes()]
            .concat()
    }

    #[test]
    fn a_buffer_has_memory_unless_it_shows_another_ones() {
        let fields = fields().of_direct().unwrap();
        let memory = |values: Vec<u8>| fields.memory(&values, 4);
        let own = memory(values(0, 0, 0x7f00_0000_1000, 64)).unwrap();
        assert_eq!((own.bytes, own.name()), (64, "native memory"));
        assert_eq!(memory(values(0, 8, 0x7f00_0000_1000, 64)).unwrap().name(), "mapped file");
        assert!(memory(values(8, 0, 0x7f00_0000_1000, 64)).is_none());
        assert!(memory(values(0, 0, 0, 64)).is_none());
        assert!(memory(values(0, 0, 0x1000, u32::MAX)).is_none());
        assert!(memory(vec![0; 7]).is_none());
        assert!(BufferFields { is_direct: false, ..fields }.of_direct().is_none());
        let mut of_android = fields;
        of_android.field(BUFFER, "memoryRef", Type::Object, 20);
        assert!(of_android.of_direct().is_none());
        let (mut memories, mut strings) = (NativeMemories::default(), Strings::default());
        let first = memories.number(own, &mut strings).unwrap();
        assert_eq!(memories.number(own, &mut strings).unwrap(), first);
        assert_eq!(memories.all.len(), 1);
        assert_eq!(strings.get(first.1), b"(memory at 0x7f0000001000)");
        // One that begins inside of the first, and ends behind it.
        let other = memory(values(0, 0, 0x7f00_0000_1020, 64)).unwrap();
        memories.number(other, &mut strings).unwrap();
        assert_eq!(memories.own_bytes(), [64, 32]);
    }
}
