//! Printed tables of `heapr explain`: memory by class, and the form of all.

use std::io::{self, Write};

use heapr_table::quantity::share;
use heapr_table::{Cell, Column, Table};

use crate::plain_text::line_width;

/// Spaces before each line.
const INDENT: usize = 2;

/// Prints a table.
pub(super) fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    table.lines(INDENT, line_width()).iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// Table of resident memory by class, with the share that each has of all.
#[derive(Debug)]
pub(super) struct ClassTable {
    table: Table,
    all_bytes: u64,
}

impl ClassTable {
    pub(super) fn new(all_bytes: u64) -> Self {
        let columns = [
            Column::text("class", ""),
            Column::bytes("bytes", "resident"),
            Column::percent("percent", "%"),
            Column::text("notes", ""),
        ];
        Self { table: Table::new("heapr.explain/1", &columns), all_bytes }
    }

    /// Adds a class; `None` instead of remarks in all rows leaves their column out.
    pub(super) fn class(&mut self, label: impl Into<Cell>, resident_bytes: u64, notes: impl Into<Cell>) {
        let of_all = share(resident_bytes, self.all_bytes);
        self.table.row(vec![label.into(), resident_bytes.into(), of_all.into(), notes.into()]);
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write_table(&self.table, out)
    }
}
