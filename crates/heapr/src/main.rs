//! The heapr command line.
fn main() {}
