//! Recordings as tables, for engines that query many of them: `docs/tables.md`.
//!
//! ```text
//! samples ── stack_id ──> stacks ── frame_id ──> frames        content-addressed: equal on all hosts
//!    └────── process_id ─> processes <─ mappings, resident
//! ```

mod call_sites;
mod content_id;
mod rows;
mod schema;

pub(crate) use content_id::content_id;
pub use rows::{NewFile, Recording, TablesError, write_tables};
pub use schema::{TABLES, Table, markdown};
