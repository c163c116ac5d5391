//! Description of a table, from which its text, JSON and CSV are made. So the command line and the
//! page show the same columns of the same rows. The crate uses no files and no terminal.
//!
//! ```
//! use heapr_table::{Column, Table, row};
//!
//! let mut table = Table::new("heapr.example/1", &[Column::text("class", "Class"), Column::bytes("own_bytes", "Own")]);
//! table.rows(10, [row!["Session", 2048_u64]]);
//! let mut text = Vec::new();
//! table.write_text(&mut text, 80).unwrap();
//! assert_eq!(text, b"Class         Own\nSession  2.00 KiB\n");
//! assert_eq!(serde_json::to_value(&table).unwrap()["rows"][0]["own_bytes"], 2048);
//! ```
#![forbid(unsafe_code)]

mod cell;
mod column;
pub mod csv;
mod frames;
pub mod json_escapes;
pub mod json_text;
mod layout;
pub mod plain;
pub mod quantity;
mod row_order;
mod table;

pub use cell::Cell;
pub use column::{Column, Kind};
pub use row_order::SortRows;
pub use table::{Table, interval_key};
