//! The rundown against real heaps, whole and damaged.

mod account;
mod damaged_heaps;
mod rundown;
