//! Data of bytearrays, arrays and numpy's arrays. Large data is a node of its own: a block of the C
//! library, or a mapping.

use super::objects::is_pointer;
use super::reader::Reader;
use super::types::{Form, Type};
use crate::error::Result;
use crate::heap::{EdgeKind, EdgeName};

/// Size from which data of an object is a node of its own.
const BLOCK_BYTES_LEAST: u64 = 512;
/// Largest size of data; bounds false sizes.
const DATA_BYTES_MAX: u64 = 1 << 46;

impl Reader<'_, '_> {
    /// Adds the data of an array: a node of its own if it is large.
    pub(super) fn read_data(&mut self, node: u32, avma: u64, of: &Type) -> Result<u64> {
        let word = |offset: u64| self.pages.word_or_zero(avma + offset);
        let (data_avma, bytes) = match of.form {
            Form::ByteArray => (word(32), word(24)),
            Form::Array => {
                let item_bytes = self.pages.half(word(40).wrapping_add(4)).unwrap_or(0);
                (word(24), word(32).saturating_mul(item_bytes.into()))
            }
            _ => return self.read_ndarray(node, avma),
        };
        self.add_data(data_avma, bytes, &of.name)
    }

    fn add_data(&mut self, data_avma: u64, bytes: u64, class: &str) -> Result<u64> {
        let bytes = bytes.min(DATA_BYTES_MAX);
        if bytes < BLOCK_BYTES_LEAST || !is_pointer(data_avma) {
            return Ok(bytes);
        }
        let name = self.heap.strings.number(&format!("(data of {class})"));
        let edge = self.internal("(data)");
        let around = self.blocks.around(data_avma).map(|number| (number, self.blocks.block(number)));
        let inside = around.filter(|(_, block)| block.address_avma != data_avma);
        // A block that has a node has the bytes already.
        if let Some((_, block)) = inside
            && let Some(&known) = self.block_nodes.get(&block.address_avma)
        {
            self.push_edge(known, edge)?;
            return Ok(0);
        }
        // Data does not reach beyond its block.
        let bytes = around.map_or(bytes, |(_, block)| {
            bytes.min(block.usable_bytes.saturating_sub(data_avma - block.address_avma))
        });
        // Data that begins inside of a block has all of it.
        let (data_avma, bytes) = inside
            .filter(|&(number, _)| !self.blocks.is_known(number))
            .map_or((data_avma, bytes), |(_, block)| (block.address_avma, block.usable_bytes));
        let node = self.add_native_node(data_avma, bytes, name)?;
        self.push_edge(node, edge)?;
        Ok(0)
    }

    fn read_ndarray(&mut self, node: u32, avma: u64) -> Result<u64> {
        let word = |offset: u64| self.pages.word_or_zero(avma + offset);
        let (data_avma, dims_avma, base, dtype) = (word(16), word(32), word(48), word(56));
        let dim_count = self.pages.half(avma + 24).unwrap_or(0).min(64);
        let owns = self.pages.half(avma + 64).unwrap_or(0) & 4 != 0;
        for (word, name) in [(base, "base"), (dtype, "dtype")] {
            let name = EdgeName::text(EdgeKind::Attribute, self.heap.strings.number(name));
            self.refer(word, name)?;
        }
        if !owns || !is_pointer(dtype) {
            // A view of memory that no array has: its base may not lead there.
            self.note_data_inside(node, data_avma)?;
            return Ok(0);
        }
        let kind = self.pages.byte(dtype + 24).unwrap_or(0);
        // numpy 1 has size and alignment there, of four bytes each. numpy 2 has flags in the lower
        // half of that word, and the size behind it.
        let half = |offset: u64| self.pages.half(dtype + offset).unwrap_or(0);
        let item_bytes = match half(36) {
            0 => self.pages.word_or_zero(dtype + 40),
            _ => u64::from(half(32)),
        };
        let mut count = 1_u64;
        for number in 0..u64::from(dim_count) {
            count = count.saturating_mul(self.pages.word_or_zero(dims_avma.wrapping_add(number * 8)));
        }
        if kind == b'O' {
            self.read_items(data_avma, count.min(DATA_BYTES_MAX / 8))?;
        }
        self.add_data(data_avma, count.saturating_mul(item_bytes), "numpy.ndarray")
    }
}
