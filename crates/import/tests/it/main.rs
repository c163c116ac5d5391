//! Files that the tools themselves write here and now: what heapr reads of them is what they say.
#![forbid(unsafe_code)]

mod hostile;
mod peers;
mod program;
mod totals;
mod untold;
