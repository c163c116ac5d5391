//! Matching of objects by address, where nothing moves.
//!
//! An address may be given again: both objects must have the same class, and the same contents
//! where these never change, which their ids show.

use rustc_hash::FxHashMap;

use super::{HeapView, MatchedBy, Matching, NOT_THERE};

/// Least share of the smaller heap's nodes that have a partner, in percent. Two processes have
/// other addresses.
const LEAST_PERCENT: u64 = 5;

/// Matches by address. Returns `None` if ids are no addresses, or those of two processes.
pub(super) fn matched(before: &impl HeapView, after: &impl HeapView) -> Option<Matching> {
    let has_addresses = |meta: &&crate::Meta| meta.dialect.as_ref().is_some_and(|it| it.ids_are_addresses);
    if ![before.meta(), after.meta()].iter().all(has_addresses) {
        return None;
    }
    let dialect = after.meta().dialect.as_ref()?;
    let mut matching = Matching::nothing(before, after, MatchedBy::Address);
    let (old_count, new_count) = (before.graph().node_count(), after.graph().node_count());
    let old: FxHashMap<u64, u32> = (0..old_count).map(|node| (before.id(node), node)).collect();
    let mut count = 0_u64;
    for b in 0..new_count {
        let Some(&a) = old.get(&after.id(b)) else { continue };
        let is_same = before.kind(a) == after.kind(b)
            && before.string_bytes(before.name_index(a)) == after.string_bytes(after.name_index(b));
        // An object that never changes its size is another one if it has another.
        let is_same = is_same
            && (before.self_bytes(a) == after.self_bytes(b) || !dialect.has_fixed_size(&after.name(b)));
        if is_same && matching.later[a as usize] == NOT_THERE {
            matching.pair(a, b);
            count += 1;
        }
    }
    (count * 100 >= u64::from(old_count.min(new_count)) * LEAST_PERCENT).then_some(matching)
}
