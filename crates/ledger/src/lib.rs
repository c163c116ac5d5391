//! placeholder, to be written
#![forbid(unsafe_code)]
