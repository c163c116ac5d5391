//! Ranges of addresses: start and exclusive end.

/// Sorts ranges by address and merges those that touch. Empty ones are dropped.
#[must_use]
pub fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.retain(|&(start_avma, end_avma)| start_avma < end_avma);
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start_avma, end_avma) in ranges {
        match joined.last_mut() {
            Some(last) if start_avma <= last.1 => last.1 = last.1.max(end_avma),
            _ => joined.push((start_avma, end_avma)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(joined(vec![(30, 40), (10, 20), (20, 25), (12, 15), (90, 90)]), [(10, 25), (30, 40)]);
    }
}
