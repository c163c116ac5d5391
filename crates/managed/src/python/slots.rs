//! Slots of collections: where a collection's size tells how many it has.

use super::dict::FIRST_KEYS_BYTES;
use super::objects::flag;
use super::reader::Reader;
use super::types::{Form, Type};
use crate::own_slots::{OwnSlots, SlotForm};
use heapr_known::cpython::Layout;

impl Reader<'_, '_> {
    /// Adds the layout of a class of collections, unless another of this name has another one.
    pub(super) fn add_slots(&mut self, class: u32, of: &Type) {
        let slots = own_slots(of, self.layout);
        let known = self.heap.own_slots.entry(class).or_insert(slots);
        *known = known.filter(|known| Some(*known) == slots);
    }
}

/// Layout of the instances of a type; `None` if their size does not tell their slots. A class of
/// the program may have values of attributes in its instances, too.
fn own_slots(of: &Type, layout: &Layout) -> Option<OwnSlots> {
    let form = match of.form {
        Form::List => SlotForm::Items,
        Form::Set => SlotForm::Set,
        Form::Deque => SlotForm::Blocks,
        Form::Dict => SlotForm::Keys {
            head_bytes: FIRST_KEYS_BYTES[usize::from(layout.has_small_keys())],
            has_short_entries: layout.has_small_keys(),
        },
        _ => return None,
    };
    let head_bytes = of.bytes_before() + of.basic_bytes;
    (!of.has(flag::MANAGED_DICT)).then_some(OwnSlots { head_bytes, form })
}
