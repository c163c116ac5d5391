//! Classes and their static variables, from the file of an assembly (ECMA-335, part II).
//!
//! ```text
//!  PE headers -> CLI header -> metadata: "BSJB", streams
//!    #Strings   names
//!    #~         sizes of tables, tables: TypeDef (2), Field (4), NestedClass (0x29), …
//! ```
//! The file is of any origin: each offset is checked, and a table that does not fit gives nothing.

use super::members::{self, Members};
use super::tables::{Tables, number, text};

/// Largest number of classes inside of each other.
const NESTING_MAX: usize = 32;
/// Largest size of all names of classes, or of variables, for each byte of a file. Rows may share
/// the text of a name, so that names of a bent file could need any amount of memory.
const NAME_BYTES_PER_BYTE: usize = 4;
/// Index of the CLI header among the directories of a PE file.
const CLI: usize = 14;

/// Static variable of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Number of the class in the order of the file.
    pub(super) class: u32,
}

/// Classes of a file.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Names, with those of outer classes: `Shop.Cart+Line`.
    pub(super) classes: Vec<String>,
    pub(super) variables: Vec<Variable>,
    /// Fields of the classes' objects; empty if they cannot be read.
    pub(super) members: Vec<Members>,
    /// Names of classes of other files, to which the fields refer.
    pub(super) elsewhere: Vec<String>,
}

/// Reads an assembly. `None`: the file has no metadata that can be read.
pub(super) fn read(file: &[u8]) -> Option<Assembly> {
    let metadata = metadata(file)?;
    let streams = streams(metadata)?;
    let stream = |wanted: &str| streams.iter().find(|(name, _)| name == wanted).map(|&(_, bytes)| bytes);
    // The other form of tables, `#-`, may number fields by way of one more table.
    let tables = Tables::of(stream("#~")?)?;
    let strings = stream("#Strings")?;
    let name_bytes_max = file.len().saturating_mul(NAME_BYTES_PER_BYTE);
    let classes = classes(&tables, strings, name_bytes_max)?;
    let blobs = stream("#Blob").unwrap_or_default();
    let variables = variables(&tables, strings, blobs, name_bytes_max)?;
    let (members, elsewhere) = members::read(&tables, strings, blobs, name_bytes_max).unwrap_or_default();
    Some(Assembly { classes, variables, members, elsewhere })
}

/// Metadata of a PE file.
fn metadata(file: &[u8]) -> Option<&[u8]> {
    let headers = file.get(number(file, 0x3c, 4)? as usize..)?;
    if !headers.starts_with(b"PE\0\0") {
        return None;
    }
    let (section_count, optional_bytes) = (number(headers, 6, 2)?, number(headers, 20, 2)? as usize);
    let optional = headers.get(24..)?;
    let directories = if number(optional, 0, 2)? == 0x20b { 112 } else { 96 };
    let sections = optional.get(optional_bytes..)?;
    let at = |rva: u64| {
        (0..section_count as usize).find_map(|section| {
            let section = sections.get(section * 40..)?;
            let (begin, bytes) = (number(section, 12, 4)?, number(section, 16, 4)?);
            let inside = rva.checked_sub(begin).filter(|&inside| inside < bytes)?;
            file.get(usize::try_from(number(section, 20, 4)? + inside).ok()?..)
        })
    };
    let cli = at(number(optional, directories + CLI * 8, 4)?)?;
    at(number(cli, 8, 4)?)?.get(..number(cli, 12, 4)? as usize)
}

/// Streams of metadata by their names.
fn streams(metadata: &[u8]) -> Option<Vec<(String, &[u8])>> {
    if !metadata.starts_with(b"BSJB") {
        return None;
    }
    let mut at = 16 + number(metadata, 12, 4)? as usize;
    let count = number(metadata, at + 2, 2)?;
    at += 4;
    let mut streams = Vec::new();
    for _ in 0..count {
        let (begin, bytes) = (number(metadata, at, 4)? as usize, number(metadata, at + 4, 4)? as usize);
        let name = text(metadata, at + 8);
        at += 8 + (name.len() + 1).next_multiple_of(4);
        streams.push((name, metadata.get(begin..begin.checked_add(bytes)?)?));
    }
    Some(streams)
}

/// Names of all classes; `None` if they are larger than allowed.
fn classes(tables: &Tables<'_>, strings: &[u8], name_bytes_max: usize) -> Option<Vec<String>> {
    let count = tables.rows(Tables::TYPES);
    let mut outer = vec![0; count as usize];
    for row in 0..tables.rows(Tables::NESTED) {
        let (Some(inner), Some(of)) =
            (tables.get(Tables::NESTED, row, 0), tables.get(Tables::NESTED, row, 1))
        else {
            continue;
        };
        if let Some(place) = (inner as usize).checked_sub(1).and_then(|inner| outer.get_mut(inner)) {
            *place = of;
        }
    }
    let part = |row: u32, column| text(strings, tables.get(Tables::TYPES, row, column).unwrap_or(0) as usize);
    let name = |class: u32| {
        let mut name = part(class, 1);
        let mut at = class;
        for _ in 0..NESTING_MAX {
            match outer.get(at as usize).copied().unwrap_or(0) {
                0 => break,
                of => at = of - 1,
            }
            name = format!("{}+{name}", part(at, 1));
        }
        match part(at, 2) {
            namespace if namespace.is_empty() => name,
            namespace => format!("{namespace}.{name}"),
        }
    };
    let mut left_bytes = name_bytes_max;
    let mut names = Vec::new();
    for class in 0..count {
        let name = name(class);
        left_bytes = left_bytes.checked_sub(name.len())?;
        names.push(name);
    }
    Some(names)
}

/// Static variables that can refer to objects; `None` if their names are larger than allowed.
fn variables(
    tables: &Tables<'_>,
    strings: &[u8],
    blobs: &[u8],
    name_bytes_max: usize,
) -> Option<Vec<Variable>> {
    /// Constants, and data that the file has.
    const WITHOUT_PLACE: u32 = 0x40 | 0x100;
    let mut left_bytes = name_bytes_max;
    let mut variables = Vec::new();
    for (class, of_class) in tables.fields_of_classes() {
        for field in of_class {
            let value = |column| tables.get(Tables::FIELDS, field, column).unwrap_or(0);
            let flags = value(0);
            if flags & Tables::STATIC == 0
                || flags & WITHOUT_PLACE != 0
                || is_number(blobs, value(2) as usize)
            {
                continue;
            }
            let name = text(strings, value(1) as usize);
            left_bytes = left_bytes.checked_sub(name.len())?;
            variables.push(Variable { name, class });
        }
    }
    Some(variables)
}

/// Whether the signature of a field is that of a number, a character or a truth value.
fn is_number(blobs: &[u8], at: usize) -> bool {
    // One byte of length, as signatures of these are short; then 6 for a field.
    let signature = blobs.get(at..at.saturating_add(3)).unwrap_or_default();
    matches!(signature, [_, 6, 2..=0x0d | 0x18 | 0x19])
}
