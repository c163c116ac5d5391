//! Parquet files, as far as tables of ours need them: flat columns, dictionaries, zstd.
//!
//! <https://github.com/apache/parquet-format>. Written by hand: the `parquet` crate would add more
//! to the program than all that is left of its 20 MiB (docs/decisions/0018-parquet.md).
//!
//! ```text
//! PAR1 | row group: column: dictionary page, data page; column: … | row group | … | footer | PAR1
//! ```

mod column;
mod levels;
mod pages;
mod table_writer;
mod thrift;

pub use column::{Column, Kind, Value};
pub use table_writer::TableWriter;
