//! Symbolization: modules, build-ids, and addresses to frames, demangled, with inlined frames,
//! files and lines.
//!
//! [`Symbolizer::resolve`] names addresses of a module. It caches the answers in a file for each
//! module, so that later requests for these addresses open no debug information. A module whose
//! build-id differs from the recorded one is never used: its addresses mean something else.
#![deny(unsafe_code)]

mod allocation_types;
mod arch;
mod bundle;
mod cache;
mod closing_brace;
mod code_places;
mod constant_sections;
mod data_symbols;
mod debug_file;
pub mod debuginfod;
mod demangle;
mod elf_facts;
mod elf_symbols;
mod frame_walk;
mod function_names;
mod go;
mod jitdump;
mod made_code;
mod made_object;
mod mapped_file;
mod module_key;
mod options;
mod other_builds;
mod packages;
mod perf_map;
mod symbol_table;
mod symbolizer;
mod thread_locals;
mod varint;
mod whole_names;

pub use bundle::{decode_bundle, encode_bundle};
pub use code_places::CodePlaces;
pub use constant_sections::constant_sections;
pub use data_symbols::{DataSymbols, type_name};
pub use debug_file::Unresolved;
pub use demangle::demangle;
pub use elf_facts::{build_id_of, svma_of_offset};
pub use frame_walk::{FrameWalker, MappedCode, WalkedFrame};
pub use function_names::{NamedFunction, Told, has_separate_debug_file, visit_functions};
pub use go::{GoPlaces, GoProgram, is_go_program};
pub use jitdump::read_jitdump;
pub use made_code::{MadeCode, MadeFunction, MadePlace};
pub use made_object::{jit_descriptor_svma, read_made_object};
pub use module_key::ModuleKey;
pub use options::{DebugServers, SymbolOptions};
pub use other_builds::OtherBuilds;
pub use packages::Packages;
pub use perf_map::read_perf_map;
pub use symbol_table::{Frame, NamedFrame, SymbolTable};
pub use symbolizer::Symbolizer;
pub use thread_locals::ThreadLocals;
