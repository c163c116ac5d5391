//! Writer of a table, row by row.

use std::io::{self, Write};

use super::column::{Column, Kind, Value};
use super::pages::ColumnValues;
use super::thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
/// Number of rows of a row group.
const GROUP_ROWS: usize = 1 << 17;
/// Largest length of a bound in bytes. A column's bounds are left out if one is longer, as they are
/// not worth their space.
const BOUND_BYTES_MAX: usize = 64;
const ZSTD: i32 = 6;

/// Writer of a table as one Parquet file.
#[derive(Debug)]
pub struct TableWriter<W> {
    out: W,
    offset: u64,
    columns: Vec<Column>,
    values: Vec<ColumnValues>,
    pending_rows: usize,
    row_count: u64,
    groups: Vec<Struct>,
}

impl<W: Write> TableWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Returns the errors of `out`, as the methods below do.
    pub fn new(mut out: W, columns: &[Column]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let values = columns.iter().map(|column| ColumnValues::new(column.kind));
        Ok(Self {
            out,
            offset: MAGIC.len() as u64,
            columns: columns.to_vec(),
            values: values.collect(),
            pending_rows: 0,
            row_count: 0,
            groups: Vec::new(),
        })
    }

    /// Adds a row, which has a value for each column.
    pub fn row(&mut self, row: &[Value<'_>]) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.columns.len());
        self.values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        self.pending_rows += 1;
        if self.pending_rows == GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.pending_rows);
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        let mut group_bytes = 0;
        for (column, values) in self.columns.iter().zip(&mut self.values) {
            let pages = values.take_pages(rows)?;
            let start = self.offset as i64;
            let mut facts = Struct::default();
            let physical = match column.kind {
                Kind::Text | Kind::Id => 6,
                Kind::Number | Kind::Time | Kind::TimeOrNone => 2,
            };
            facts.i32(1, physical).i32s(2, &pages.encodings).texts(3, &[column.name]).i32(4, ZSTD);
            facts.i64(5, rows as i64).i64(6, pages.raw_bytes as i64).i64(7, pages.bytes.len() as i64);
            facts.i64(9, start + pages.data_at as i64);
            if pages.data_at > 0 {
                facts.i64(11, start);
            }
            if let Some([least, greatest]) =
                pages.bounds.filter(|bounds| bounds.iter().all(|bound| bound.len() <= BOUND_BYTES_MAX))
            {
                let mut statistics = Struct::default();
                statistics.binary(5, &greatest).binary(6, &least);
                facts.structure(12, statistics);
            }
            let mut chunk = Struct::default();
            chunk.i64(2, start).structure(3, facts);
            chunks.push(chunk);
            group_bytes += pages.raw_bytes as i64;
            self.out.write_all(&pages.bytes)?;
            self.offset += pages.bytes.len() as u64;
        }
        let mut group = Struct::default();
        group.structures(1, chunks).i64(2, group_bytes).i64(3, rows as i64);
        self.groups.push(group);
        self.row_count += rows as u64;
        Ok(())
    }

    /// Ends the file and returns the number of rows.
    pub fn finish(mut self) -> io::Result<u64> {
        self.end_group()?;
        let mut root = Struct::default();
        root.binary(4, b"schema").i32(5, self.columns.len() as i32);
        let mut schema = vec![root];
        schema.extend(self.columns.iter().map(|column| element(column.kind, column.name)));
        let orders = self.columns.iter().map(|_| {
            let mut order = Struct::default();
            order.structure(1, Struct::default());
            order
        });
        let mut footer = Struct::default();
        footer.i32(1, 2).structures(2, schema).i64(3, self.row_count as i64).structures(4, self.groups);
        footer.binary(6, concat!("heapr version ", env!("CARGO_PKG_VERSION")).as_bytes());
        footer.structures(7, orders.collect());
        let footer = footer.end();
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.row_count)
    }
}

/// Schema element of a column: its physical and logical type.
fn element(kind: Kind, name: &str) -> Struct {
    let mut element = Struct::default();
    element.i32(1, if kind.is_number() { 2 } else { 6 });
    element.i32(3, i32::from(kind == Kind::TimeOrNone)).binary(4, name.as_bytes());
    let mut logical = Struct::default();
    match kind {
        Kind::Number => return element,
        // Ids are text, because not all engines know the format's UUID type.
        Kind::Text | Kind::Id => {
            element.i32(6, 0);
            logical.structure(1, Struct::default());
        }
        Kind::Time | Kind::TimeOrNone => {
            // Declared as local time: engines then need no table of time zones to compute with it.
            let (mut unit, mut time) = (Struct::default(), Struct::default());
            unit.structure(2, Struct::default());
            time.bool(1, false).structure(2, unit);
            logical.structure(8, time);
        }
    }
    element.structure(10, logical);
    element
}
