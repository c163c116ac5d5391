//! The `.heapr` file: writer and reader. Bytes in, values out.
#![forbid(unsafe_code)]

mod model;

pub use model::*;
