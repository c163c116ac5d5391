//! Comparison of two sampling profiles: growth per function, and its error.

use std::collections::HashMap;

use heapr_table::quantity::DEVIATIONS;

use crate::CallTree;
use crate::format::CallFunction;
use heapr_table::SortRows as _;

/// Live bytes allocated by a function, before and after. Bytes are estimates.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionGrowth {
    /// Function; its location is that in the later profile, if that profile contains it.
    pub function: CallFunction,
    /// Live bytes in the first profile.
    pub before_bytes: u64,
    /// Live bytes in the second profile.
    pub after_bytes: u64,
    /// Number of samples behind these bytes, in both profiles.
    pub sample_count: u64,
    /// Upper bound of half the width of the growth's 95 % interval. `None` if a profile does not
    /// list its samples.
    pub error_bytes: Option<u64>,
}

impl FunctionGrowth {
    /// Bytes after minus bytes before.
    pub fn growth_bytes(&self) -> i64 {
        i64::try_from(i128::from(self.after_bytes) - i128::from(self.before_bytes)).unwrap_or(i64::MAX)
    }

    /// Whether the change exceeds its error.
    pub fn is_certain(&self) -> bool {
        self.error_bytes.is_some_and(|error| self.growth_bytes().unsigned_abs() > error)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Estimate {
    bytes: u64,
    sample_count: u64,
    variance: f64,
    is_unknown: bool,
}

/// Compares two profiles by function. Most growth comes first.
///
/// V8 samples each byte with the same small probability and scales the result. A node of `n`
/// samples that stand for `b` bytes has a variance of at most `b²/n`. That is the variance of a
/// Poisson process whose samples all weigh `b/n`. Blocks larger than the sampling interval are
/// always sampled and vary less.
pub fn compare_profiles(before: &CallTree, after: &CallTree) -> Vec<FunctionGrowth> {
    let mut estimates: HashMap<Identity<'_>, (Option<&CallFunction>, [Estimate; 2])> = HashMap::new();
    for (side, tree) in [before, after].into_iter().enumerate() {
        for node in tree.nodes.iter().filter(|node| node.own.live_bytes > 0) {
            let Some(function) = tree.functions.get(node.function as usize) else { continue };
            let (shown, sides) = estimates.entry(Identity::of(function)).or_default();
            *shown = Some(function);
            let (bytes, samples) = (node.own.live_bytes, node.own.live_count);
            let sum = &mut sides[side];
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.sample_count += samples;
            sum.is_unknown |= samples == 0;
            sum.variance += (bytes as f64).powi(2) / samples.max(1) as f64;
        }
    }
    let growth = |(function, [before, after]): (Option<&CallFunction>, [Estimate; 2])| {
        let error = DEVIATIONS * (before.variance + after.variance).sqrt();
        Some(FunctionGrowth {
            function: function?.clone(),
            before_bytes: before.bytes,
            after_bytes: after.bytes,
            sample_count: before.sample_count + after.sample_count,
            error_bytes: (!before.is_unknown && !after.is_unknown).then_some(error as u64),
        })
    };
    let mut all: Vec<FunctionGrowth> = estimates.into_values().filter_map(growth).collect();
    all.sort_rows_by(|a, b| {
        let key = |growth: &FunctionGrowth| (growth.growth_bytes(), growth.after_bytes);
        key(b).cmp(&key(a)).then_with(|| a.function.cmp(&b.function))
    });
    all
}

/// Identity of a function across two profiles. Lines move between versions of a program, names do
/// not. A nameless function is identified by its location alone.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity<'a> {
    Named(&'a str, &'a str),
    Place(&'a CallFunction),
}

impl<'a> Identity<'a> {
    fn of(function: &'a CallFunction) -> Self {
        if function.name.starts_with('(') {
            return Self::Place(function);
        }
        Self::Named(&function.name, &function.script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocations, CallNode};

    fn tree(functions: &[(&str, u32)], nodes: &[(u32, u64, u64)]) -> CallTree {
        let function = |&(name, line): &(&str, u32)| CallFunction {
            name: name.to_owned(),
            script: "/app.js".to_owned(),
            line,
            column: 1,
        };
        let node = |&(function, live_bytes, live_count): &(u32, u64, u64)| CallNode {
            function,
            parent: 0,
            own: Allocations { live_bytes, live_count, ..Allocations::default() },
        };
        CallTree {
            functions: functions.iter().map(function).collect(),
            nodes: nodes.iter().map(node).collect(),
            is_sampled: true,
        }
    }

    #[test]
    fn a_function_is_found_again_where_its_line_moved() {
        let before = tree(
            &[("(root)", 0), ("grow", 10), ("(anonymous function)", 20)],
            &[(0, 0, 0), (1, 1000, 4), (2, 50, 1)],
        );
        let after = tree(
            &[("(root)", 0), ("grow", 11), ("(anonymous function)", 21)],
            &[(0, 0, 0), (1, 900, 9), (1, 8100, 81), (2, 50, 1)],
        );
        let found = compare_profiles(&before, &after);
        let lines: Vec<_> = found
            .iter()
            .map(|line| (line.function.name.as_str(), line.function.line, line.growth_bytes()))
            .collect();
        assert_eq!(
            lines,
            [("grow", 11, 8000), ("(anonymous function)", 21, 50), ("(anonymous function)", 20, -50)]
        );
        // 1.96 √(1000²/4 + 900²/9 + 8100²/81) = 1.96 √(250,000 + 90,000 + 810,000)
        assert_eq!(found[0].error_bytes, Some(2101));
        assert!(found[0].is_certain() && !found[1].is_certain());
        assert_eq!((found[0].sample_count, found[0].before_bytes, found[0].after_bytes), (94, 1000, 9000));
    }

    #[test]
    fn without_samples_nothing_is_certain() {
        let before = tree(&[("grow", 1)], &[(0, 10, 0)]);
        let after = tree(&[("grow", 1)], &[(0, 10_000, 50)]);
        let found = compare_profiles(&before, &after);
        assert_eq!((found[0].error_bytes, found[0].is_certain()), (None, false));
    }

    /// The samples are drawn as V8 draws them. The truth must lie within the interval at least as
    /// often as claimed.
    #[test]
    fn the_interval_holds_the_truth() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut inside = 0;
        for _ in 0..400 {
            let mut sample = |count: u32, size: f64| {
                let chance = 1.0 - (-size / 32768.0).exp();
                let taken = (0..count).filter(|_| random() < chance).count() as u64;
                (0, (taken as f64 * size / chance) as u64, taken)
            };
            let (before, after) = (sample(20_000, 64.0), sample(60_000, 64.0));
            let tree = |node: (u32, u64, u64)| tree(&[("grow", 1)], &[node]);
            let found = compare_profiles(&tree(before), &tree(after));
            let truth = 40_000 * 64;
            inside +=
                u32::from((found[0].growth_bytes() - truth).unsigned_abs() <= found[0].error_bytes.unwrap());
        }
        assert!(inside >= 366, "{inside} of 400");
    }
}
