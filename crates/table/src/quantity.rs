//! Formats bytes, counts and times for people.

/// Half-width of the interval that holds 95 % of a normal distribution, in standard deviations.
pub const DEVIATIONS: f64 = 1.959_964;

/// Bytes as `1.50 MiB`: two decimals below 10 units, one from 10 units on; below 1 KiB a whole
/// number.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // Otherwise 999.95 would be printed as 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Number as `1,234,567`.
#[must_use]
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Estimate with half of its 95 % interval: `1.50 MiB ± 120.0 KiB`.
#[must_use]
pub fn within(number: &str, half: &str) -> String {
    format!("{number} ± {half}")
}

/// Estimate in the form of [`bytes`]; without an interval if `plus_minus` is 0.
#[must_use]
pub fn bytes_within(number: u64, plus_minus: u64) -> String {
    if plus_minus == 0 { bytes(number) } else { within(&bytes(number), &bytes(plus_minus)) }
}

/// Estimate in the form of [`count`]; without an interval if `plus_minus` is 0.
#[must_use]
pub fn count_within(number: u64, plus_minus: u64) -> String {
    if plus_minus == 0 { count(number) } else { within(&count(number), &count(plus_minus)) }
}

/// Estimate in the form of [`plural`]: `1,234 blocks ± 120`.
#[must_use]
pub fn plural_within(number: u64, plus_minus: u64, what: &str) -> String {
    let things = plural(number, what);
    if plus_minus == 0 { things } else { within(&things, &count(plus_minus)) }
}

/// Number with a noun: `1 block`, `1,234 blocks`.
#[must_use]
pub fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Change in bytes: `+1.50 MiB`, `-12 B`, `0 B`.
#[must_use]
pub fn signed_bytes(delta: i128) -> String {
    signed(delta, bytes)
}

/// Change of a number: `+1,234`, `-12`, `0`.
#[must_use]
pub fn signed_count(delta: i128) -> String {
    signed(delta, count)
}

fn signed(delta: i128, format: fn(u64) -> String) -> String {
    let magnitude = format(u64::try_from(delta.unsigned_abs()).unwrap_or(u64::MAX));
    match delta {
        0 => magnitude,
        1.. => format!("+{magnitude}"),
        _ => format!("-{magnitude}"),
    }
}

/// Share of a whole: `12.3 %`.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", share(part, whole))
}

/// Share of a whole in hundredths; 0 if the whole is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Span of time: `2 h 03 m 04 s`, `5 m 06.789 s`, `1.234 s`, `56.7 ms`, `8.90 µs`, `123 ns`.
/// Options that take a time parse all these forms.
#[must_use]
pub fn duration(duration_ns: u64) -> String {
    match duration_ns {
        0..1_000 => format!("{duration_ns} ns"),
        1_000..1_000_000 => format!("{:.2} µs", duration_ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", duration_ns as f64 / 1e6),
        1_000_000_000..60_000_000_000 => format!("{:.3} s", duration_ns as f64 / 1e9),
        60_000_000_000..3_600_000_000_000 => {
            let milliseconds = duration_ns / 1_000_000;
            let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
            format!("{minutes} m {:02}.{:03} s", rest / 1000, rest % 1000)
        }
        _ => {
            let seconds = duration_ns / 1_000_000_000;
            format!("{} h {:02} m {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short_and_never_reach_1000() {
        let shown = |value| bytes(value);
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1023), "1023 B");
        assert_eq!(shown(1024), "1.00 KiB");
        assert_eq!(shown(10_240), "10.0 KiB");
        assert_eq!(shown(1_023_999), "0.98 MiB");
        assert_eq!(shown(1_048_575), "1.00 MiB");
        assert_eq!(shown(999 * 1024), "999.0 KiB");
        assert_eq!(shown(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn counts_signs_and_times_read_well() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([signed_count(-1000), signed_count(0), signed_bytes(2048)], ["-1,000", "0", "+2.00 KiB"]);
        assert_eq!(
            [duration(12), duration(1_500), duration(2_000_000), duration(1_500_000_000)],
            ["12 ns", "1.50 µs", "2.0 ms", "1.500 s"]
        );
        assert_eq!(
            [duration(59_999_000_000), duration(65_004_000_000), duration(3_723_000_000_000)],
            ["59.999 s", "1 m 05.004 s", "1 h 02 m 03 s"]
        );
        assert_eq!([percent(1, 3), percent(0, 0)], ["33.3 %", "0.0 %"]);
    }
}
