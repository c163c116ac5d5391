//! Tables of an assembly's metadata.

/// Number of tables that are known.
const TABLE_COUNT: usize = 0x2d;

/// Column of a table.
#[derive(Clone, Copy)]
enum Column {
    /// Number of so many bytes.
    Fixed(u8),
    /// Index into the heap of texts, of GUIDs, of signatures.
    Text,
    Guid,
    Blob,
    /// Number of a row of a table.
    Row(u8),
    /// Number of a row of one of several tables: bits that say which, and the tables.
    Coded(u8, &'static [u8]),
}

use std::ops::Range;

use Column::{Blob, Coded, Fixed, Guid, Row, Text};

const TYPE_OR_REFERENCE: Column = Coded(2, &[0x02, 0x01, 0x1b]);
const METHOD_OR_REFERENCE: Column = Coded(1, &[0x06, 0x0a]);
const IMPLEMENTATION: Column = Coded(2, &[0x26, 0x23, 0x27]);
const WITH_ATTRIBUTES: Column = Coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
);

/// Columns of the tables up to that of nested classes, by the table's number.
const COLUMNS: [&[Column]; 0x2a] = [
    &[Fixed(2), Text, Guid, Guid, Guid],
    &[Coded(2, &[0x00, 0x1a, 0x23, 0x01]), Text, Text],
    &[Fixed(4), Text, Text, TYPE_OR_REFERENCE, Row(0x04), Row(0x06)],
    &[Row(0x04)],
    &[Fixed(2), Text, Blob],
    &[Row(0x06)],
    &[Fixed(4), Fixed(2), Fixed(2), Text, Blob, Row(0x08)],
    &[Row(0x08)],
    &[Fixed(2), Fixed(2), Text],
    &[Row(0x02), TYPE_OR_REFERENCE],
    &[Coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]), Text, Blob],
    &[Fixed(2), Coded(2, &[0x04, 0x08, 0x17]), Blob],
    &[WITH_ATTRIBUTES, Coded(3, &[0x06, 0x0a]), Blob],
    &[Coded(1, &[0x04, 0x08]), Blob],
    &[Fixed(2), Coded(2, &[0x02, 0x06, 0x20]), Blob],
    &[Fixed(2), Fixed(4), Row(0x02)],
    &[Fixed(4), Row(0x04)],
    &[Blob],
    &[Row(0x02), Row(0x14)],
    &[Row(0x14)],
    &[Fixed(2), Text, TYPE_OR_REFERENCE],
    &[Row(0x02), Row(0x17)],
    &[Row(0x17)],
    &[Fixed(2), Text, Blob],
    &[Fixed(2), Row(0x06), Coded(1, &[0x14, 0x17])],
    &[Row(0x02), METHOD_OR_REFERENCE, METHOD_OR_REFERENCE],
    &[Text],
    &[Blob],
    &[Fixed(2), Coded(1, &[0x04, 0x06]), Text, Row(0x1a)],
    &[Fixed(4), Row(0x04)],
    &[Fixed(4), Fixed(4)],
    &[Fixed(4)],
    &[Fixed(4), Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, Text, Text],
    &[Fixed(4)],
    &[Fixed(4), Fixed(4), Fixed(4)],
    &[Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, Text, Text, Blob],
    &[Fixed(4), Row(0x23)],
    &[Fixed(4), Fixed(4), Fixed(4), Row(0x23)],
    &[Fixed(4), Text, Blob],
    &[Fixed(4), Fixed(4), Text, Text, IMPLEMENTATION],
    &[Fixed(4), Fixed(4), Text, IMPLEMENTATION],
    &[Row(0x02), Row(0x02)],
];

/// Little-endian number of 1 to 8 bytes.
pub(super) fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// Tables with the places of their rows.
pub(super) struct Tables<'a> {
    bytes: &'a [u8],
    rows: [u32; TABLE_COUNT],
    /// Place of each table, and bytes of a row.
    places: [(usize, usize); COLUMNS.len()],
    /// Bytes of an index into the heaps of texts, of GUIDs, of signatures.
    heaps: [usize; 3],
}

impl<'a> Tables<'a> {
    /// Numbers of the tables that are read.
    pub(super) const REFERENCES: usize = 0x01;
    pub(super) const TYPES: usize = 0x02;
    pub(super) const FIELDS: usize = 0x04;
    pub(super) const SPECIFIED: usize = 0x1b;
    pub(super) const NESTED: usize = 0x29;
    /// Flag of a field: a static variable.
    pub(super) const STATIC: u32 = 0x10;

    /// Reads the header of a stream of tables.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let sizes = number(bytes, 6, 1)?;
        let present = number(bytes, 8, 8)?;
        let heaps = [1, 2, 4].map(|bit| if sizes & bit != 0 { 4 } else { 2 });
        let mut tables = Self { bytes, rows: [0; TABLE_COUNT], places: [(0, 0); COLUMNS.len()], heaps };
        let mut at = 24;
        for table in (0..64).filter(|table| present >> table & 1 != 0) {
            let count = number(bytes, at, 4)? as u32;
            if let Some(rows) = tables.rows.get_mut(table) {
                *rows = count;
            }
            at += 4;
        }
        for (table, columns) in COLUMNS.iter().enumerate() {
            let row_bytes = columns.iter().map(|&column| tables.width(column)).sum();
            tables.places[table] = (at, row_bytes);
            at = at.checked_add(row_bytes.checked_mul(tables.rows[table] as usize)?)?;
        }
        (at <= bytes.len()).then_some(tables)
    }

    /// Number of rows of a table.
    pub(super) fn rows(&self, table: usize) -> u32 {
        self.rows[table]
    }

    /// Value of a column of a row, which counts from 0.
    pub(super) fn get(&self, table: usize, row: u32, column: usize) -> Option<u32> {
        if row >= self.rows[table] {
            return None;
        }
        let (begin, row_bytes) = self.places[table];
        let before: usize = COLUMNS[table][..column].iter().map(|&column| self.width(column)).sum();
        let width = self.width(*COLUMNS[table].get(column)?);
        number(self.bytes, begin + row as usize * row_bytes + before, width).map(|value| value as u32)
    }

    /// Rows of the fields of each class, in order. A field is of one class: lists of a bent file
    /// that overlap are not told twice.
    pub(super) fn fields_of_classes(&self) -> impl Iterator<Item = (u32, Range<u32>)> {
        let field_count = self.rows(Self::FIELDS);
        let first = move |class| Some(self.get(Self::TYPES, class, 4)?.saturating_sub(1).min(field_count));
        (0..self.rows(Self::TYPES)).scan(0, move |told_to, class| {
            let begin = first(class).unwrap_or(0).max(*told_to);
            let end = first(class + 1).unwrap_or(field_count);
            *told_to = end.max(*told_to);
            Some((class, begin..end))
        })
    }

    fn width(&self, column: Column) -> usize {
        let by_rows = |rows: u32, limit: u32| if rows < limit { 2 } else { 4 };
        match column {
            Fixed(bytes) => bytes.into(),
            Text => self.heaps[0],
            Guid => self.heaps[1],
            Blob => self.heaps[2],
            Row(table) => by_rows(self.rows[usize::from(table)], 1 << 16),
            Coded(bits, tables) => {
                let rows = tables.iter().map(|&table| self.rows[usize::from(table)]).max();
                by_rows(rows.unwrap_or(0), 1 << (16 - bits))
            }
        }
    }
}

/// Text up to its 0; empty outside of the bytes.
pub(super) fn text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().take(1024).position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&rest[..end]).into_owned()
}
