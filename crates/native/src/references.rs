//! Words that lead into blocks.

use heapr_trace::EdgeGrade;

use crate::block_map::{BlockMap, Hit};

/// The block that a word leads into, with the grade of the reference before further evidence.
#[inline(always)]
pub(crate) fn reference(map: &BlockMap, word: u64) -> Option<(Hit, EdgeGrade)> {
    if word < map.limit_avma() {
        let hit = map.find(word)?;
        let grade = match hit.offset_bytes {
            0 => EdgeGrade::Start,
            offset if offset == map.size_bytes(hit.block as usize) => EdgeGrade::OnePast,
            _ => EdgeGrade::Interior,
        };
        return Some((hit, grade));
    }
    tagged(map, word)
}

/// Finds the block for a word with bits that no address has: tags, counters, boxed values.
#[inline(always)]
fn tagged(map: &BlockMap, word: u64) -> Option<(Hit, EdgeGrade)> {
    let sign = !(map.limit_avma() - 1);
    // Small negative numbers, and addresses of the kernel.
    if word & sign == sign {
        return None;
    }
    let hit = map.find(word & !sign)?;
    // Low bits may be a tag, too. A larger offset is not accepted: numbers would lead into blocks
    // too easily.
    (hit.offset_bytes < 8).then_some((hit, EdgeGrade::Tagged))
}

/// Finds words at no multiple of 8 that lead to a block's start, as in packed structures and in JIT
/// code. Reports the number of the word that each begins in.
pub(crate) fn unaligned(map: &BlockMap, words: &[[u8; 8]], mut found: impl FnMut(usize, u32)) {
    for (number, pair) in words.windows(2).enumerate() {
        let (low, high) = (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1]));
        if low == 0 && high == 0 {
            continue;
        }
        let both = u128::from(low) | u128::from(high) << 64;
        for shift in 1..8 {
            let word = (both >> (shift * 8)) as u64;
            if map.may_hit(word)
                && let Some(hit) = map.find(word).filter(|hit| hit.offset_bytes == 0)
            {
                found(number, hit.block);
            }
        }
    }
}

/// True if the block's contents may prove a reference of this grade.
pub(crate) fn may_be_explained(grade: EdgeGrade) -> bool {
    matches!(grade, EdgeGrade::Interior | EdgeGrade::OnePast)
}
