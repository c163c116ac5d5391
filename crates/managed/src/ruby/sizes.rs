//! Sizes of objects: the slot and the memory that belongs to the object alone, as Ruby counts them.

use super::naming::{CODE, VARIABLES, internal_kind};
use super::reader::Reader;
use super::slots::Slot;
use super::values::{
    CONTENTS, HAS_VARIABLES_BESIDE, Kind, NOT_FREED, OUTSIDE_OR_INSIDE, SHARED, TABLE_BYTES,
};

/// Largest size of one part: a size that cannot be is left out.
const PART_BYTES_MAX: u64 = 1 << 40;
/// Size of a digit of a large integer.
const DIGIT_BYTES: u64 = 4;
/// Size of a small table of a hash outside of its object.
const SMALL_TABLE_BYTES: u64 = 128;
/// Size of the rest of a class outside of its object.
const CLASS_REST_BYTES: u64 = 112;

impl Reader<'_, '_> {
    pub(super) fn size_of(&self, slot: Slot, flags: u64) -> u64 {
        let mut parts = self.parts_bytes(slot, flags);
        if flags & HAS_VARIABLES_BESIDE != 0
            && let Some(&table) = self.beside.get(&slot.avma)
        {
            parts = parts.saturating_add(8 + u64::from(self.values.pages.half(table).unwrap_or(0)) * 8);
        }
        slot.bytes + if parts < PART_BYTES_MAX { parts } else { 0 }
    }

    fn parts_bytes(&self, slot: Slot, flags: u64) -> u64 {
        let (values, layout) = (self.values, self.values.layout);
        let avma = slot.avma;
        let is_flagged = flags & OUTSIDE_OR_INSIDE != 0;
        match Kind::of(flags) {
            Kind::Text if is_flagged && flags & (SHARED | NOT_FREED) == 0 => {
                values.word(avma, 32).saturating_add(1)
            }
            Kind::Array if !is_flagged && flags & SHARED == 0 => {
                let room = if flags & layout.array_root_flag == 0 { 24 } else { CONTENTS };
                values.word(avma, room).saturating_mul(8)
            }
            Kind::Hash => {
                let (table, is_large) = values.hash_table(avma);
                match (is_large, layout.has_table_inside) {
                    (true, is_inside) => {
                        values.table_bytes(table).saturating_sub(if is_inside { TABLE_BYTES } else { 0 })
                    }
                    (false, false) if table != 0 => SMALL_TABLE_BYTES,
                    (false, _) => 0,
                }
            }
            Kind::Struct if flags & layout.struct_inside_mask == 0 => {
                values.word(avma, CONTENTS).saturating_mul(8)
            }
            Kind::Bignum if flags & 1 << 14 == 0 => values.word(avma, CONTENTS).saturating_mul(DIGIT_BYTES),
            Kind::Object if !is_flagged => self.variables_bytes(avma, flags),
            Kind::Class | Kind::Module => self.class_bytes(avma, flags),
            Kind::Data => {
                let (name, data) = values.structure(avma);
                if data == avma + 32 { 0 } else { self.structure_bytes(name.as_deref(), data) }
            }
            Kind::Internal if internal_kind(flags) == VARIABLES => (values.half(avma, 32) + 1) * 8,
            Kind::Internal if internal_kind(flags) == CODE && values.word(avma, CONTENTS) != 0 => {
                let body = values.word(avma, CONTENTS);
                let instructions = u64::from(values.pages.half(body.wrapping_add(4)).unwrap_or(0));
                layout.code_bytes + instructions * 8
            }
            _ => 0,
        }
    }

    fn variables_bytes(&self, avma: u64, flags: u64) -> u64 {
        let layout = self.values.layout;
        if !layout.has_shapes {
            return self.values.half(avma, CONTENTS) * 8;
        }
        match self.ids.by_shape(self.values, flags) {
            Some(_) => self.ids.room(self.values, flags) * 8,
            None => self.values.table_bytes(self.values.word(avma, layout.object_variables)),
        }
    }

    fn class_bytes(&self, avma: u64, flags: u64) -> u64 {
        let (values, layout) = (self.values, self.values.layout);
        let rest = values.class_rest(avma);
        if rest == 0 {
            return 0;
        }
        let methods = values.id_table_bytes(values.methods(avma));
        let constants = values.id_table_bytes(values.word(rest, layout.constants));
        let variables = values.word(rest, layout.class_variables);
        let own = if layout.has_shapes {
            self.ids.by_shape(values, flags).map_or(0, |names| (names.len() as u64).next_power_of_two() * 8)
        } else {
            let tables = [variables, values.word(rest, 0)].into_iter().filter(|&table| table != 0);
            CLASS_REST_BYTES + tables.map(|table| values.table_bytes(table)).sum::<u64>()
        };
        methods + constants + own
    }
}
