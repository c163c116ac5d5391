//! Names: ids of methods, constants and variables by the table of symbols, and names of instance
//! variables by shapes or the table of a class.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::values::{Kind, Values};

/// Ids from this one on have their scope in the lowest bits; smaller ones are operators.
const LAST_OPERATOR: u64 = 0xa9;
const SCOPE_SHIFT: u32 = 4;
const SCOPE: u64 = 0xe;
const GLOBAL_SCOPE: u64 = 6;
/// Names in a part of the table: text and symbol each.
const PART_IDS: u64 = 512;
/// Number and text of an operator, by which the table is recognised.
const PLUS: u64 = b'+' as u64;
/// Symbols without an object: low byte, and shift of the id.
const SYMBOL: u64 = 0x0c;
const SYMBOL_SHIFT: u32 = 8;
const NAME_BYTES_MAX: u64 = 256;
/// Shape: name of the last variable, number of variables, kind, parent.
const SHAPE_BYTES: u64 = 40;
const SHAPE_NAME: u64 = 8;
const SHAPE_COUNT: u64 = 16;
const SHAPE_ROOM: u64 = 20;
const SHAPE_KIND: u64 = 24;
const SHAPE_PARENT: u64 = 28;
const KIND_VARIABLE: u8 = 1;
const KIND_TABLE: u8 = 4;
const SHAPES_MAX: u32 = 1 << 20;
/// Largest number of instance variables of an object.
const VARIABLES_MAX: u64 = 1 << 16;

/// Names of instance variables by their position; `None`: they are in a table.
pub(super) type Positions = Option<Rc<[u64]>>;

/// Number of an id, by which tables have it.
pub(super) fn number_of(id: u64) -> u64 {
    if id > LAST_OPERATOR { id >> SCOPE_SHIFT } else { id }
}

/// Whether an id names a global variable.
pub(super) fn is_global(id: u64) -> bool {
    id > LAST_OPERATOR && id & SCOPE == GLOBAL_SCOPE
}

/// Whether an array is the table of names: its part has the operator `+` where that belongs.
pub(super) fn is_table(values: Values<'_, '_>, array: u64) -> bool {
    values.kind(array) == Kind::Array && name_in(values, array, PLUS).as_deref() == Some("+")
}

fn name_in(values: Values<'_, '_>, table: u64, number: u64) -> Option<String> {
    let part = values.item(table, number / PART_IDS)?;
    if values.kind(part) != Kind::Array {
        return None;
    }
    let text = values.item(part, number % PART_IDS * 2)?;
    values.text(text, NAME_BYTES_MAX)
}

/// Address of the shapes if a word leads to their tree; 0 if it does not.
pub(super) fn shapes_at(values: Values<'_, '_>, tree: u64) -> u64 {
    let (list, root) = (values.word(tree, 0), values.word(tree, 8));
    let count = values.pages.half(tree.wrapping_add(16)).unwrap_or(0);
    let is_tree = list != 0 && list == root && list.is_multiple_of(4096) && (8..SHAPES_MAX).contains(&count);
    let is_root =
        || values.word(list, SHAPE_NAME) == 0 && values.pages.byte(list.wrapping_add(SHAPE_KIND)) == Some(0);
    if is_tree && is_root() { list } else { 0 }
}

/// Names of a heap.
#[derive(Debug)]
pub(super) struct Ids {
    table: u64,
    shapes: u64,
    /// Names of variables by shape, or by the address of the class's table.
    known: RefCell<FxHashMap<u64, Positions>>,
}

impl Ids {
    pub(super) fn of(table: u64, shapes: u64) -> Self {
        Self { table, shapes, known: RefCell::default() }
    }

    /// Name of an id by its number.
    pub(super) fn name(&self, values: Values<'_, '_>, number: u64) -> Option<String> {
        name_in(values, self.table, number)
    }

    /// Text of a symbol.
    pub(super) fn symbol(&self, values: Values<'_, '_>, value: u64) -> Option<String> {
        if value & 0xff == SYMBOL {
            return self.name(values, number_of(value >> SYMBOL_SHIFT));
        }
        (value.is_multiple_of(8) && values.kind(value) == Kind::Symbol)
            .then(|| values.text(values.word(value, 24), NAME_BYTES_MAX))
            .flatten()
    }

    fn shape(&self, flags: u64) -> u64 {
        self.shapes.wrapping_add((flags >> 32).wrapping_mul(SHAPE_BYTES))
    }

    /// Room for instance variables of an object's shape.
    pub(super) fn room(&self, values: Values<'_, '_>, flags: u64) -> u64 {
        let room = values.pages.half(self.shape(flags).wrapping_add(SHAPE_ROOM)).unwrap_or(0);
        u64::from(room).min(VARIABLES_MAX)
    }

    /// Names of the variables of an object with these flags.
    pub(super) fn by_shape(&self, values: Values<'_, '_>, flags: u64) -> Positions {
        let of = flags >> 32;
        if let Some(known) = self.known.borrow().get(&of) {
            return known.clone();
        }
        let mut at = self.shape(flags);
        let kind = |at: u64| values.pages.byte(at.wrapping_add(SHAPE_KIND)).unwrap_or(0);
        let count = |at: u64| {
            let count = values.word(at, SHAPE_COUNT) & u64::from(u32::MAX);
            count.min(VARIABLES_MAX)
        };
        let mut names = vec![0; count(at) as usize];
        let mut is_table = false;
        for _ in 0..VARIABLES_MAX {
            match kind(at) {
                KIND_TABLE => is_table = true,
                KIND_VARIABLE => {
                    let position = count(at).checked_sub(1).and_then(|at| names.get_mut(at as usize));
                    if let Some(name) = position {
                        *name = number_of(values.word(at, SHAPE_NAME));
                    }
                }
                // The root of all shapes.
                0 => break,
                _ => {}
            }
            let parent = values.pages.half(at.wrapping_add(SHAPE_PARENT)).unwrap_or(u32::MAX);
            if parent >= SHAPES_MAX {
                break;
            }
            at = self.shapes.wrapping_add(u64::from(parent) * SHAPE_BYTES);
        }
        let found: Positions = (!is_table).then(|| names.into());
        self.known.borrow_mut().insert(of, found.clone());
        found
    }

    /// Names of the variables of the objects of a class that has a table of their positions.
    pub(super) fn by_table(&self, values: Values<'_, '_>, table: u64) -> Rc<[u64]> {
        if let Some(Some(known)) = self.known.borrow().get(&table) {
            return Rc::clone(known);
        }
        let mut names = Vec::new();
        values.entries(table, |id, entry| {
            let index = values.pages.half(entry).map_or(VARIABLES_MAX, u64::from);
            if index < VARIABLES_MAX {
                let count = names.len().max(index as usize + 1);
                names.resize(count, 0);
                names[index as usize] = number_of(id);
            }
        });
        let names: Rc<[u64]> = names.into();
        self.known.borrow_mut().insert(table, Some(Rc::clone(&names)));
        names
    }
}
