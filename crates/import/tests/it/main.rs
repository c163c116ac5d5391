//! Files written by the installed tools themselves: heapr reads the numbers that the tools report.
#![forbid(unsafe_code)]

mod hostile;
mod peers;
mod program;
mod totals;
mod untold;
