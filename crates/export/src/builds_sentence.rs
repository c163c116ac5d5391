//! The sentence on top of a comparison of builds: what the largest change is.

use heapr_query::Metric;
use heapr_table::quantity::{bytes, count, signed_bytes, signed_count};
use heapr_trace::Amounts;

/// A function in the first and in the last build.
#[derive(Debug, Clone, Copy)]
pub struct FunctionChange<'a> {
    /// Name in the first build; `None`: it holds nothing there.
    pub old_name: Option<&'a str>,
    /// Name in the last build; `None`: it holds nothing there.
    pub new_name: Option<&'a str>,
    /// Amounts in the first build.
    pub before: &'a Amounts,
    /// Amounts in the last build.
    pub after: &'a Amounts,
    /// Amounts of its largest stack in both builds: blocks of one place.
    pub largest: [&'a Amounts; 2],
}

/// Difference of mean block sizes that is told, in parts of the smaller one: one in this many.
const SIZE_PART: u64 = 50;

/// Returns the sentence. `change`: the function that changed most, if one did.
#[must_use]
pub fn builds_sentence(metric: Metric, change: Option<FunctionChange<'_>>) -> String {
    let Some(change) = change.filter(|change| metric.of(change.before) != metric.of(change.after)) else {
        return format!("No function differs in {} from the first build to the last.", metric.words());
    };
    let difference = metric.difference(change.before, change.after);
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    let half = metric.plus_minus_of_difference(change.before, change.after);
    let amount = match (metric.is_bytes(), half) {
        (true, 0) => bytes(size),
        (true, half) => format!("{} ± {}", bytes(size), bytes(half)),
        (false, 0) => count(size),
        (false, half) => format!("{} ± {}", count(size), count(half)),
    };
    let direction = if difference > 0 { "more" } else { "less" };
    let what = match metric {
        Metric::OutstandingBytes => "holds".to_owned(),
        metric => format!("has in {}", metric.words()),
    };
    let name = change.new_name.or(change.old_name).unwrap_or("code without a stack");
    let than = match (change.old_name, change.new_name) {
        (Some(old), Some(new)) if old != new => format!(" than {old} did"),
        (Some(_), Some(_)) => String::new(),
        (None, _) => "; the first build has none of it".to_owned(),
        (_, None) => "; the last build has none of it".to_owned(),
    };
    let sentence = match change.new_name.is_none() || change.old_name.is_none() {
        true => format!("{name} {what} {amount} {direction}{than}"),
        false => format!("{name} {what} {amount} {direction}{than}{}", reason(metric, &change)),
    };
    format!("{sentence}.")
}

/// Change of the mean size of a block, or of the number of blocks, whichever explains more.
fn reason(metric: Metric, change: &FunctionChange<'_>) -> String {
    let of = |amounts: &Amounts| match metric {
        Metric::OutstandingBytes => Some((amounts.outstanding_bytes, amounts.outstanding_count)),
        Metric::PeakBytes => Some((amounts.peak_bytes, amounts.peak_count)),
        Metric::TotalBytes => Some((amounts.total_bytes, amounts.total_count)),
        _ => None,
    };
    let (Some(before), Some(after)) = (of(change.before), of(change.after)) else { return String::new() };
    let [Some(old), Some(new)] = change.largest.map(of) else { return String::new() };
    if [before, after, old, new].iter().any(|(_, blocks)| *blocks == 0) {
        return String::new();
    }
    let (old_size, new_size) = (old.0 / old.1, new.0 / new.1);
    // By logarithms: the larger factor is the reason.
    let factor = |one: u64, other: u64| (one.max(1) as f64 / other.max(1) as f64).ln().abs();
    let is_size_told = new_size.abs_diff(old_size) > old_size.min(new_size) / SIZE_PART;
    if is_size_told && factor(old_size, new_size) >= factor(before.1, after.1) {
        format!(": {} bytes a block instead of {}", count(new_size), count(old_size))
    } else if before.1 != after.1 {
        format!(": {} blocks instead of {}", count(after.1), count(before.1))
    } else {
        String::new()
    }
}

/// Returns a change as text, with its interval.
#[must_use]
pub fn signed_change(metric: Metric, before: &Amounts, after: &Amounts) -> String {
    let delta = metric.difference(before, after);
    let text = if metric.is_bytes() { signed_bytes(delta) } else { signed_count(delta) };
    match metric.plus_minus_of_difference(before, after) {
        0 => text,
        half if metric.is_bytes() => format!("{text} ± {}", bytes(half)),
        half => format!("{text} ± {}", count(half)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(bytes: u64, count: u64) -> Amounts {
        Amounts { outstanding_bytes: bytes, outstanding_count: count, ..Amounts::default() }
    }

    fn sentence(old: Option<&str>, new: Option<&str>, before: &Amounts, after: &Amounts) -> String {
        let largest = [before, after];
        let change = FunctionChange { old_name: old, new_name: new, before, after, largest };
        builds_sentence(Metric::OutstandingBytes, Some(change))
    }

    #[test]
    fn a_renamed_function_with_larger_blocks_is_told_by_their_size() {
        let (before, after) = (live(700_000, 1000), live(900_000, 1000));
        assert_eq!(
            sentence(Some("remember"), Some("keep_session"), &before, &after),
            "keep_session holds 195.3 KiB more than remember did: 900 bytes a block instead of 700."
        );
        assert_eq!(
            sentence(Some("f"), Some("f"), &live(700, 1), &live(7000, 10)),
            "f holds 6.15 KiB more: 10 blocks instead of 1."
        );
    }

    #[test]
    fn what_a_build_lacks_is_said_and_no_change_is_no_function() {
        let (nothing, some) = (live(0, 0), live(1024, 2));
        assert_eq!(
            sentence(None, Some("g"), &nothing, &some),
            "g holds 1.00 KiB more; the first build has none of it."
        );
        assert_eq!(
            sentence(Some("g"), None, &some, &nothing),
            "g holds 1.00 KiB less; the last build has none of it."
        );
        let none = "No function differs in outstanding size from the first build to the last.";
        assert_eq!(sentence(Some("f"), Some("f"), &some, &some), none);
        assert_eq!(builds_sentence(Metric::OutstandingBytes, None), none);
    }
}
