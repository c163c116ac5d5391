//! Parquet files, as far as heapr's tables need them: flat columns, dictionaries, zstd.
//!
//! See <https://github.com/apache/parquet-format>. Written by hand, because the `parquet` crate
//! would exceed the program's size limit of 20 MiB (docs/decisions/0018-parquet.md).
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
