//! Pairs of edges that stand for an entry of a WeakMap.
//!
//! The value of an entry is held by the table and the key together. A snapshot has an edge from
//! each of them:
//!
//! ```text
//!  12 / part of key (Object @35) -> value (Array @37) pair in WeakMap (table @31)
//!  `. `------------------------------.------------------------------------------'
//!   number of the edge         the same text on both edges of the pair
//! ```

use rustc_hash::FxHashMap;

use crate::Strings;

/// Parsed name of a WeakMap entry's edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WeakMapEdge {
    /// Id of the table.
    pub(crate) table_id: u64,
    /// Number that both edges of a pair share.
    pub(crate) pair: u32,
}

/// Parsed names of the edges of WeakMap entries, by string number.
#[derive(Debug, Default)]
pub(crate) struct WeakMapEdges {
    by_name: FxHashMap<u32, WeakMapEdge>,
    pair_count: u32,
}

impl WeakMapEdges {
    pub(crate) fn of(strings: &Strings) -> Self {
        let mut by_name = FxHashMap::default();
        let mut pairs: FxHashMap<&[u8], u32> = FxHashMap::default();
        for number in 0..strings.count() {
            if let Some((table_id, shared)) = parse(strings.get(number)) {
                let next = pairs.len() as u32;
                let pair = *pairs.entry(shared).or_insert(next);
                by_name.insert(number, WeakMapEdge { table_id, pair });
            }
        }
        Self { by_name, pair_count: pairs.len() as u32 }
    }

    #[inline]
    pub(crate) fn get(&self, name: u32) -> Option<WeakMapEdge> {
        if self.by_name.is_empty() { None } else { self.by_name.get(&name).copied() }
    }

    pub(crate) fn pair_count(&self) -> u32 {
        self.pair_count
    }
}

/// Parses the name of a WeakMap entry's edge: the table's id, and the part that both edges share.
fn parse(name: &[u8]) -> Option<(u64, &[u8])> {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shared = &name[digits..];
    if digits == 0 {
        return None;
    }
    let between = shared.strip_prefix(b" / part of key (")?.strip_suffix(b")")?;
    // Parsed from the end: `VALUE @N) pair in WeakMap (table @N`
    let (between, table) = split_id(between)?;
    let between = between.strip_suffix(b") pair in WeakMap (table")?;
    let (between, _) = split_id(between)?;
    // Searched before that: `KEY @N) -> value (`
    const MIDDLE: &[u8] = b") -> value (";
    let mut middles = memchr::memmem::find_iter(between, MIDDLE);
    let has_key = middles.any(|at| split_id(&between[..at]).is_some());
    // The pattern's dots do not match line ends.
    let is_line = !between.iter().any(|&byte| matches!(byte, b'\n' | b'\r'));
    (has_key && is_line).then_some((table, shared))
}

/// Returns the name of a WeakMap entry's edge with its ids only: names of keys and values may be
/// texts of the program.
pub(crate) fn without_names(name: &[u8]) -> Option<Vec<u8>> {
    let (table, shared) = parse(name)?;
    let number = String::from_utf8_lossy(&name[..name.len() - shared.len()]);
    // The ids are those at the borders of `KEY @1) -> value (VALUE @2) pair in WeakMap (table @3)`.
    let (pair, _) = split_id(shared.strip_suffix(b")")?)?;
    let (pair, value) = split_id(pair.strip_suffix(b") pair in WeakMap (table")?)?;
    let (_, key) = memchr::memmem::find_iter(pair, b") -> value (").find_map(|at| split_id(&pair[..at]))?;
    let text = format!(
        "{number} / part of key (key @{key}) -> value (value @{value}) pair in WeakMap (table @{table})"
    );
    Some(text.into_bytes())
}

/// Splits `… @123` before the space.
fn split_id(text: &[u8]) -> Option<(&[u8], u64)> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, id) = text.split_at(text.len() - digits);
    let id = std::str::from_utf8(id).ok()?.parse().ok()?;
    Some((before.strip_suffix(b" @")?, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ephemerons_are_recognized() {
        let name = b"12 / part of key (Object @35) -> value (Array @37) pair in WeakMap (table @31)";
        assert_eq!(parse(name), Some((31, &name[2..])));
        let strange = b"1 / part of key (a) -> value (b @3) -> value (c @37) pair in WeakMap (table @31)";
        assert_eq!(parse(strange), Some((31, &strange[1..])));
        assert_eq!(
            parse(b"12 / part of key (Object) -> value (Array @37) pair in WeakMap (table @31)"),
            None
        );
        assert_eq!(
            parse(b" / part of key (Object @35) -> value (Array @37) pair in WeakMap (table @31)"),
            None
        );
        assert_eq!(
            parse(b"12 / part of key (Object @35) -> value (Array @37) pair in WeakMap (table @)"),
            None
        );
        assert_eq!(parse(b"12"), None);
        let bare = b"12 / part of key (key @35) -> value (value @37) pair in WeakMap (table @31)";
        assert_eq!(without_names(name).unwrap(), bare);
        assert_eq!(parse(bare).map(|(table, _)| table), Some(31));
    }
}
