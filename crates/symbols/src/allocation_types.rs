//! Allocated types that the compiler stored with each call (DWARF). They are exact, even if the
//! allocating function's name contains no type.
//!
//! ```text
//! DW_TAG_call_site   DW_AT_call_return_pc 0x1234   DW_AT_LLVM_alloc_type -> DW_TAG_structure_type "Foo"
//! ```

use std::collections::HashMap;
use std::path::Path;

use crate::whole_names::each_unit;

/// `DW_AT_LLVM_alloc_type`.
const ALLOC_TYPE: gimli::DwAt = gimli::DwAt(0x3e0e);
/// `ALLOC_TYPE` as it is encoded in the abbreviation table (ULEB128).
const WRITTEN: [u8; 2] = [0x8e, 0x7c];
/// Longest type name in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Finds the types, in the order of the calls' return addresses.
pub(crate) fn find(debug: &Path, return_svmas: &[u64]) -> Vec<Option<String>> {
    let mut types = vec![None; return_svmas.len()];
    // A call at the end of a function returns to an address outside of it.
    let calls: Vec<u64> = return_svmas.iter().map(|svma| svma.wrapping_sub(1)).collect();
    let has_any = |kinds: &[u8]| kinds.windows(WRITTEN.len()).any(|bytes| bytes == WRITTEN);
    each_unit(debug, &calls, has_any, |units, unit, inside| {
        let wanted: HashMap<u64, usize> = inside.iter().map(|&at| (return_svmas[at], at)).collect();
        let mut entries = unit.unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let (tag, value) = (entry.tag(), entry.attr_value(ALLOC_TYPE));
            if tag != gimli::DW_TAG_call_site || value.is_none() {
                continue;
            }
            let back = entry.attr_value(gimli::DW_AT_call_return_pc);
            let back = back.and_then(|back| units.dwarf.attr_address(&unit.unit, back).ok().flatten());
            if let Some(&at) = back.and_then(|svma| wanted.get(&svma)) {
                let name = units.type_of(unit, value, 0);
                types[at] = Some(name).filter(|name| name != "?" && name.len() <= NAME_BYTES_MAX);
            }
        }
    });
    types
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The test uses only an assembler, because few compilers write this attribute.
    const PROGRAM: &str = r#"
        .text
        .globl make
        .type make, @function
make:   nop
        nop
        nop
        .size make, . - make
        .section .debug_abbrev
        .byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
        .byte 2, 0x2e, 1, 3, 8, 0, 0
        .byte 3, 0x48, 0, 0x7d, 1, 0x8e, 0x7c, 0x13, 0, 0
        .byte 4, 0x39, 1, 3, 8, 0, 0
        .byte 5, 0x13, 0, 3, 8, 0, 0
        .byte 0
        .section .debug_info
start:  .long end - head
head:   .short 4
        .long 0
        .byte 8
        .byte 1
        .quad make, 3
        .byte 2
        .asciz "make"
        .byte 3
        .quad make + 2
        .long type - start
        .byte 3
        .quad make + 3
        .long far - start
        .byte 0
        .byte 4
        .asciz "shop"
type:   .byte 5
        .asciz "Order"
        .byte 0
        .byte 0
far:
end:
"#;

    #[test]
    fn the_type_beside_a_call_is_found_by_where_it_comes_back_to() {
        let folder = tempfile::tempdir().unwrap();
        let (source, object) = (folder.path().join("a.s"), folder.path().join("a.so"));
        std::fs::write(&source, PROGRAM).unwrap();
        let built =
            Command::new("gcc").args(["-shared", "-nostdlib", "-o"]).arg(&object).arg(&source).status();
        assert!(built.unwrap().success());
        let symbols = crate::DataSymbols::functions_of(&object);
        let make_svma = (0..1 << 20).find(|&svma| symbols.find(svma).is_some()).unwrap();
        let found = find(&object, &[make_svma + 1, make_svma + 2, make_svma + 3]);
        assert_eq!(found, [None, Some("shop::Order".to_owned()), None]);
        assert_eq!(find(Path::new("/nonexistent"), &[1]), [None]);
    }
}
