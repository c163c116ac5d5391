//! Patterns of x86-64 code.

use super::{GoPatterns, Width};

/// Patterns in the code of Go's runtime.
pub(crate) const GO_PATTERNS: GoPatterns = GoPatterns { load, switch, choice };

/// Address that the instruction `mov offset(%rip), %register` at an offset reads.
fn load(width: Width, code: &[u8], at: usize, code_svma: u64) -> Option<u64> {
    let rest = code.get(at..)?;
    let behind = match (width, rest) {
        (Width::Word, [0x48 | 0x4c, 0x8b, mode, ..]) if mode & 0xc7 == 5 => 3,
        (Width::Half, [0x8b, mode, ..]) if mode & 0xc7 == 5 => 2,
        _ => return None,
    };
    // A word's load has the same bytes behind its prefix.
    let is_word = at.checked_sub(1).is_some_and(|before| code[before] & 0xf8 == 0x48);
    (width == Width::Word || !is_word).then_some(())?;
    target(rest, behind, code_svma.checked_add(at as u64)?, 0)
}

/// Finds `if unwanted { rate = 0 }`: a byte is compared with 0, and a word is cleared behind the
/// jump.
fn switch(code: &[u8], at: usize, code_svma: u64, rate_svma: u64) -> Option<u64> {
    let rest = code.get(at..)?;
    let [0x80, 0x3d, _, _, _, _, 0, 0x74, _, 0x48, 0xc7, 0x05, ..] = rest else { return None };
    let start_svma = code_svma.checked_add(at as u64)?;
    let cleared = target(rest.get(9..)?, 3, start_svma.checked_add(9)?, 4)?;
    let compared = target(rest, 2, start_svma, 1)?;
    (cleared == rate_svma).then_some(compared)
}

/// Finds the same decision in older runtimes: a byte is read, and soon after it a word is written.
fn choice(code: &[u8], at: usize, code_svma: u64, rate_svma: u64) -> Option<u64> {
    const SOON_BYTES: usize = 40;
    let rest = code.get(at..)?;
    let [0x0f, 0xb6, 0x05, ..] = rest else { return None };
    let start_svma = code_svma.checked_add(at as u64)?;
    let stores_rate = |behind: usize| {
        let store = rest.get(behind..)?;
        let [0x48, 0x89, 0x05, ..] = store else { return None };
        target(store, 3, start_svma.checked_add(behind as u64)?, 0).filter(|&svma| svma == rate_svma)
    };
    (7..SOON_BYTES).find_map(stores_rate)?;
    target(rest, 3, start_svma, 0)
}

/// Target of `call distance`.
pub(super) fn call_target(code: &[u8], code_svma: u64) -> Option<u64> {
    if code.first() == Some(&0xe8) { target(code, 1, code_svma, 0) } else { None }
}

/// Decodes an address relative to the next instruction. The distance lies `at` bytes behind the
/// instruction's begin, and `more` bytes separate it from the next one.
fn target(instruction: &[u8], at: usize, svma: u64, more: u64) -> Option<u64> {
    let distance = i32::from_le_bytes(*instruction.get(at..)?.first_chunk()?);
    svma.checked_add(at as u64 + 4 + more)?.checked_add_signed(i64::from(distance))
}
