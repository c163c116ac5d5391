//! Lists how the callers of embedded allocators' functions in files use registers: `cargo run -p
//! heapr-allocators --example entries -- FILE...`.
//!
//! If all callers follow the calling convention, a recorded call costs as much as one of malloc.
//! Otherwise callers may hold values in any register.

use std::path::Path;

use heapr_allocators::{InsideOf, ModuleKind, Sought};
use heapr_symbols::SymbolOptions;

fn main() {
    let sought = Sought::default();
    for file in std::env::args().skip(1) {
        let path = Path::new(&file);
        let kind = ModuleKind { is_main: true, exports_malloc: false };
        let Some(inside) = InsideOf::read(&sought, path, path, &SymbolOptions::default(), kind) else {
            println!("{file}: it is no ELF file");
            continue;
        };
        for allocator in inside.allocators {
            let names = |keeps: bool| {
                let such = allocator.functions.iter().filter(|function| function.keeps_convention == keeps);
                such.map(|function| function.name.as_str()).collect::<Vec<_>>()
            };
            let (kept, other) = (names(true), names(false));
            println!("{file}: {}: {} kept, {} not", allocator.name, kept.len(), other.len());
            println!("    kept: {}", kept.join(" "));
            println!("    not:  {}", other.join(" "));
        }
    }
}
