//! Functions that the agent normally calls in a C library, for programs without a shared one. A
//! statically linked program contains only what it uses itself, and possibly without names.
//!
//! ```text
//! functions | struct dl_phdr_info of the program, which `dl_iterate_phdr` reports
//! ```

use super::assembly::{Assembler, B, Label, NOT_ASSEMBLED, RET, br, cbnz_w, cbz, mov, mov_number, sub};
use super::{BASIC_NAMES, INFO_BYTES, PlacedCode, ProgramHeaders, program_info};

/// Size in bytes of the code and data from [`basic_functions`].
pub(crate) const BASIC_BYTES: usize = 256;

/// Returns the code and data to be placed at `start_avma` (aligned to 8), in executable memory.
///
/// # Errors
/// Returns a reason if the code cannot be assembled.
pub(crate) fn basic_functions(start_avma: u64, program: ProgramHeaders) -> Result<PlacedCode, &'static str> {
    let mut a = Assembler::default();
    let info = a.label();
    let features = no_features(&mut a);
    let functions = write(&mut a, info);
    // The structure follows the code.
    a.quad(info, 0);
    let info_offset = a.offset(info).ok_or(NOT_ASSEMBLED)?;
    let all = [features].into_iter().chain(functions);
    let offsets: Option<Vec<u64>> = all.map(|function| a.offset(function)).collect();
    let names = ["getauxval"].into_iter().chain(BASIC_NAMES).zip(offsets.ok_or(NOT_ASSEMBLED)?);
    let names = names.map(|(name, offset)| (name.to_owned(), start_avma + offset)).collect();
    let mut bytes = a.finish()?;
    bytes.truncate(info_offset as usize);
    bytes.extend(program_info(program, start_avma + info_offset));
    debug_assert!(bytes.len() <= BASIC_BYTES);
    Ok((bytes, names))
}

/// `ldrb w, [x], 1`.
fn ldrb_after(to: u32, base: u32) -> u32 {
    0x3840_1400 | base << 5 | to
}

/// `strb w, [x], 1`.
fn strb_after(from: u32, base: u32) -> u32 {
    0x3800_1400 | base << 5 | from
}

/// Writes `getauxval` with the answer 0; returns its label. The compiler's part of the agent asks
/// for the processor's features, and uses none of those that it is not told.
fn no_features(a: &mut Assembler) -> Label {
    let function = a.here();
    a.put(mov_number(0, 0));
    a.put(RET);
    function
}

/// Writes the functions; returns their labels.
fn write(a: &mut Assembler, info: Label) -> [Label; BASIC_NAMES.len()] {
    /// `eor w3, w3, w4`
    const DIFFERENCE: u32 = 0x4a04_0063;
    /// `sub x0, x1, x0`
    const DISTANCE: u32 = 0xcb00_0020;
    let copies = |a: &mut Assembler, loads: Option<u32>| {
        let function = a.here();
        let end = a.label();
        a.put(mov(3, 0));
        let next = a.here();
        a.branch_if(cbz(2), end);
        loads.into_iter().for_each(|load| a.put(load));
        a.put(strb_after(if loads.is_some() { 4 } else { 1 }, 3));
        a.put(sub(2, 2, 1));
        a.branch(B, next);
        a.set(end);
        a.put(RET);
        function
    };
    let memcpy = copies(a, Some(ldrb_after(4, 1)));
    let memset = copies(a, None);

    let strlen = a.here();
    a.put(mov(1, 0));
    let next = a.here();
    a.put(ldrb_after(2, 1));
    a.branch_if(cbnz_w(2), next);
    a.put(DISTANCE);
    a.put(sub(0, 0, 1));
    a.put(RET);

    let bcmp = a.here();
    let (next, equal, differs) = (a.here(), a.label(), a.label());
    a.branch_if(cbz(2), equal);
    a.put(ldrb_after(3, 0));
    a.put(ldrb_after(4, 1));
    a.put(sub(2, 2, 1));
    a.put(DIFFERENCE);
    a.branch_if(cbnz_w(3), differs);
    a.branch(B, next);
    a.set(differs);
    a.put(mov_number(0, 1));
    a.put(RET);
    a.set(equal);
    a.put(mov_number(0, 0));
    a.put(RET);

    let iterate = a.here();
    a.put(mov(16, 0));
    a.put(mov(2, 1));
    a.address(0, info);
    a.put(mov_number(1, INFO_BYTES as u16));
    a.put(br(16));
    [memcpy, memset, strlen, bcmp, iterate]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_follows_the_functions() {
        let program = ProgramHeaders { bias: 0x5000, headers_avma: 0x5040, count: 9 };
        let (bytes, names) = basic_functions(0x1000, program).unwrap();
        assert!(bytes.len() <= BASIC_BYTES);
        assert_eq!(bytes[bytes.len() - INFO_BYTES..][..8], 0x5000_u64.to_le_bytes());
        for (name, avma) in names {
            // Before each function one ends.
            let at = (avma - 0x1000) as usize;
            assert!(at == 0 || bytes[at - 4..at] == RET.to_le_bytes(), "{name}");
        }
    }
}
