//! Fields of objects and their types, from the tables of an assembly.
//!
//! Signatures are those of ECMA-335, II.23.2. What is not known has no type: an object of such a
//! class gets no names of fields.

use super::tables::{Tables, text};

/// Largest number of types inside of each other in a signature.
const DEPTH_MAX: usize = 16;
/// Largest number of generic arguments.
const ARGUMENTS_MAX: u32 = 64;

/// Class that a signature names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// Number of the class in this file.
    Here(u32),
    /// Index among [`Members::elsewhere`].
    Elsewhere(u32),
}

/// Type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number, a truth value, an address: it refers to no object.
    Plain,
    Text,
    Array,
    /// A reference to an object of a class or its heirs; `None`: of any.
    Object(Option<Named>),
    /// A structure, whose fields lie in the object itself, and its generic arguments.
    Structure(Named, Vec<Shape>),
    /// A generic argument of the class, by its number.
    Argument(u32),
}

/// Class that another one inherits its fields from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parent {
    None,
    Unknown,
    Class(Named, Vec<Shape>),
}

/// Field of the objects of a class.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    /// `None`: it is not known.
    pub(super) shape: Option<Shape>,
}

/// Class with what its objects have.
#[derive(Debug, Clone)]
pub(super) struct Members {
    pub(super) parent: Parent,
    pub(super) fields: Vec<Field>,
    /// The class says where its fields lie: they are in no known order.
    pub(super) is_laid_out: bool,
    pub(super) is_interface: bool,
}

/// Reader of signatures.
struct Signatures<'a> {
    tables: &'a Tables<'a>,
    blobs: &'a [u8],
}

/// Members of all classes, and the names of classes of other files; `None` if their names are
/// larger than allowed.
pub(super) fn read(
    tables: &Tables<'_>,
    strings: &[u8],
    blobs: &[u8],
    name_bytes_max: usize,
) -> Option<(Vec<Members>, Vec<String>)> {
    const EXPLICIT_LAYOUT: u32 = 0x10;
    const LAYOUT: u32 = 0x18;
    const INTERFACE: u32 = 0x20;
    let signatures = Signatures { tables, blobs };
    let mut left_bytes = name_bytes_max;
    let mut all = Vec::new();
    for (class, of_class) in tables.fields_of_classes() {
        let mut fields = Vec::new();
        for field in of_class {
            let value = |column| tables.get(Tables::FIELDS, field, column).unwrap_or(0);
            if value(0) & Tables::STATIC != 0 {
                continue;
            }
            let shape = signatures.field(value(2) as usize);
            if shape == Some(Shape::Plain) {
                continue;
            }
            let name = text(strings, value(1) as usize);
            left_bytes = left_bytes.checked_sub(name.len())?;
            fields.push(Field { name, shape });
        }
        let flags = tables.get(Tables::TYPES, class, 0).unwrap_or(0);
        let parent = signatures.parent(tables.get(Tables::TYPES, class, 3).unwrap_or(0));
        all.push(Members {
            parent,
            fields,
            is_laid_out: flags & LAYOUT == EXPLICIT_LAYOUT,
            is_interface: flags & INTERFACE != 0,
        });
    }
    Some((all, elsewhere(tables, strings, left_bytes)?))
}

/// Names of the classes of other files, with those of outer classes.
fn elsewhere(tables: &Tables<'_>, strings: &[u8], mut left_bytes: usize) -> Option<Vec<String>> {
    /// Kind of a scope that is another class.
    const OF_A_CLASS: u32 = 3;
    let mut names = Vec::new();
    for row in 0..tables.rows(Tables::REFERENCES) {
        let part =
            |row, column| text(strings, tables.get(Tables::REFERENCES, row, column).unwrap_or(0) as usize);
        let mut name = part(row, 1);
        let mut at = row;
        for _ in 0..DEPTH_MAX {
            let scope = tables.get(Tables::REFERENCES, at, 0).unwrap_or(0);
            if scope & 3 != OF_A_CLASS || scope >> 2 == 0 {
                break;
            }
            at = (scope >> 2) - 1;
            name = format!("{}+{name}", part(at, 1));
        }
        let namespace = part(at, 2);
        if !namespace.is_empty() {
            name = format!("{namespace}.{name}");
        }
        left_bytes = left_bytes.checked_sub(name.len())?;
        names.push(name);
    }
    Some(names)
}

impl Signatures<'_> {
    /// Type of a field by the place of its signature.
    fn field(&self, at: usize) -> Option<Shape> {
        const FIELD: u8 = 6;
        let mut at = self.begin(at)?;
        (self.byte(&mut at)? == FIELD).then_some(())?;
        self.shape(&mut at, 0)
    }

    fn parent(&self, token: u32) -> Parent {
        if token >> 2 == 0 {
            return Parent::None;
        }
        match self.class(token, 0) {
            Some(Shape::Object(Some(class))) => Parent::Class(class, Vec::new()),
            Some(Shape::Structure(class, arguments)) => Parent::Class(class, arguments),
            _ => Parent::Unknown,
        }
    }

    /// Place behind the length of a signature.
    fn begin(&self, mut at: usize) -> Option<usize> {
        self.packed(&mut at)?;
        Some(at)
    }

    fn byte(&self, at: &mut usize) -> Option<u8> {
        let byte = *self.blobs.get(*at)?;
        *at += 1;
        Some(byte)
    }

    /// Number of one, two or four bytes.
    fn packed(&self, at: &mut usize) -> Option<u32> {
        let first = u32::from(self.byte(at)?);
        let (more, bits) = match first {
            0..0x80 => return Some(first),
            0x80..0xc0 => (1, first & 0x3f),
            _ => (3, first & 0x1f),
        };
        let bytes = self.blobs.get(*at..*at + more)?;
        *at += more;
        Some(bytes.iter().fold(bits, |value, &byte| value << 8 | u32::from(byte)))
    }

    /// Type of a signature. Generic classes are told as structures by [`Self::class`] alone.
    fn shape(&self, at: &mut usize, depth: usize) -> Option<Shape> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.byte(at)? {
            0x02..=0x0d | 0x18 | 0x19 => Shape::Plain,
            0x0e => Shape::Text,
            0x0f => {
                if self.blobs.get(*at) == Some(&0x01) {
                    *at += 1;
                } else {
                    self.shape(at, depth + 1)?;
                }
                Shape::Plain
            }
            0x11 => match self.class(self.packed(at)?, depth + 1)? {
                Shape::Object(Some(class)) => Shape::Structure(class, Vec::new()),
                other => other,
            },
            0x12 => match self.class(self.packed(at)?, depth + 1)? {
                Shape::Structure(class, _) => Shape::Object(Some(class)),
                other => other,
            },
            0x13 => Shape::Argument(self.packed(at)?),
            0x15 => self.generic(at, depth)?,
            0x1c => Shape::Object(None),
            0x1d => {
                self.shape(at, depth + 1)?;
                Shape::Array
            }
            0x14 => {
                self.shape(at, depth + 1)?;
                let _dimensions = self.packed(at)?;
                for _ in 0..2 {
                    for _ in 0..self.packed(at)?.min(ARGUMENTS_MAX) {
                        self.packed(at)?;
                    }
                }
                Shape::Array
            }
            // Marks such as `volatile`: a class, and the type itself.
            0x1f | 0x20 => {
                self.packed(at)?;
                self.shape(at, depth + 1)?
            }
            _ => return None,
        })
    }

    /// Generic class or structure with its arguments.
    fn generic(&self, at: &mut usize, depth: usize) -> Option<Shape> {
        const STRUCTURE: u8 = 0x11;
        let is_structure = self.byte(at)? == STRUCTURE;
        let Shape::Object(Some(class)) = self.class(self.packed(at)?, depth + 1)? else { return None };
        let mut arguments = Vec::new();
        for _ in 0..self.packed(at)?.min(ARGUMENTS_MAX) {
            arguments.push(self.shape(at, depth + 1)?);
        }
        Some(if is_structure { Shape::Structure(class, arguments) } else { Shape::Object(Some(class)) })
    }

    /// Class of a token: of this file, of another one, or a type of its own with its arguments.
    fn class(&self, token: u32, depth: usize) -> Option<Shape> {
        let row = (token >> 2).checked_sub(1)?;
        match token & 3 {
            0 => Some(Shape::Object(Some(Named::Here(row)))),
            1 => Some(Shape::Object(Some(Named::Elsewhere(row)))),
            2 if depth <= DEPTH_MAX => {
                let mut at = self.begin(self.tables.get(Tables::SPECIFIED, row, 0)? as usize)?;
                if self.blobs.get(at) != Some(&0x15) {
                    return self.shape(&mut at, depth + 1);
                }
                // The arguments of a generic parent are wanted, too.
                at += 2;
                let Shape::Object(Some(class)) = self.class(self.packed(&mut at)?, depth + 1)? else {
                    return None;
                };
                let mut arguments = Vec::new();
                for _ in 0..self.packed(&mut at)?.min(ARGUMENTS_MAX) {
                    arguments.push(self.shape(&mut at, depth + 1)?);
                }
                Some(Shape::Structure(class, arguments))
            }
            _ => None,
        }
    }
}
