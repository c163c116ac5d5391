//! Bytes, counts and times as people write and read them.

use std::time::Duration;

use anyhow::{Context as _, bail};

/// `1.5 MiB`: three digits or more, never more than the value has.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 999.95 would be printed as 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// `1,234,567`.
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

/// `1 block`, `1,234 blocks`.
#[must_use]
pub fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `+1.5 MiB`, `-12 B`, `0 B`.
#[must_use]
pub fn signed_bytes(delta: i128) -> String {
    signed(delta, bytes)
}

/// `+1,234`, `-12`, `0`.
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

/// `12.3 %` of a whole; nothing of nothing is 0.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{percent:.1} %")
}

/// `2 h 03 m 04 s`, `5 m 06.789 s`, `1.234 s`, `56.7 ms`, `8.90 µs`, `123 ns`:
/// [`parse_duration_ns`] reads them all.
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

/// Bytes: a number, with K, M, G or T (or KiB …) for powers of 1024.
///
/// # Errors
/// It is not written so.
pub fn parse_bytes(text: &str) -> anyhow::Result<u64> {
    let (number, suffix) = split_number(text);
    let unit: u64 = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => bail!("{text:?} is no size: after the number, K, M, G or T can stand, not {suffix:?}"),
    };
    scaled(number, unit).with_context(|| format!("{text:?} is no size"))
}

/// A span of time in ns: a number in microseconds, or numbers with units, as in `1.5s` and `1h
/// 30m`.
///
/// # Errors
/// It is not written so.
pub fn parse_duration_ns(text: &str) -> anyhow::Result<u64> {
    parse_span_ns(text, 1_000)
}

/// A span of time for options that take seconds: a bare number is of those, else as
/// [`parse_duration_ns`].
///
/// # Errors
/// It is not written so.
pub fn parse_seconds(text: &str) -> anyhow::Result<Duration> {
    parse_span_ns(text, 1_000_000_000).map(Duration::from_nanos)
}

/// `bare_ns`: the unit of a number without one.
fn parse_span_ns(text: &str, bare_ns: u64) -> anyhow::Result<u64> {
    let mut sum_ns = 0_u64;
    // Units go down, so that none stands twice: `1h 30m`, not `30m 1h`.
    let mut above_ns = u64::MAX;
    let mut rest = text.trim();
    loop {
        let (number, behind) = split_number(rest);
        let end = behind.find(|character: char| character.is_ascii_digit() || character == '.');
        let (unit, next) = behind.split_at(end.unwrap_or(behind.len()));
        let unit_ns = match unit.trim().to_ascii_lowercase().as_str() {
            "" if above_ns == u64::MAX && next.is_empty() => bare_ns,
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => bail!("{text:?} is no time: after a number, h, m, s, ms, us or ns can stand, not {unit:?}"),
        };
        if unit_ns >= above_ns {
            bail!("{text:?} is no time: units go down, as in 1h 30m 5s");
        }
        above_ns = unit_ns;
        let part_ns = scaled(number, unit_ns).with_context(|| format!("{text:?} is no time"))?;
        sum_ns =
            sum_ns.checked_add(part_ns).with_context(|| format!("{text:?} is no time: it is too long"))?;
        if next.is_empty() {
            return Ok(sum_ns);
        }
        rest = next;
    }
}

/// A time of a trace, in ns since its start: as [`parse_duration_ns`], or wall-clock as in
/// `2026/11/21:07:22:05.25`, `2026-11-21T07:22:05.25` (both local; UTC with `Z` or `+UTC`; with an
/// offset as `+01:00`).
///
/// # Errors
/// It is not written so.
pub fn parse_time_ns(text: &str, start_unix_ns: u64) -> anyhow::Result<u64> {
    if !text.contains(':') {
        return parse_duration_ns(text);
    }
    let unix_ns = parse_wall_clock_ns(text).with_context(|| {
        format!(
            "{text:?} is no time: it can be written like 2026-11-21T07:22:05.25 or 2026/11/21:07:22:05.25"
        )
    })?;
    let since_start_ns = unix_ns - i128::from(start_unix_ns);
    match u64::try_from(since_start_ns) {
        Ok(time_ns) => Ok(time_ns),
        Err(_) => bail!(
            "{text:?} lies {} before the start of the trace",
            duration(u64::try_from(since_start_ns.unsigned_abs()).unwrap_or(u64::MAX))
        ),
    }
}

fn parse_wall_clock_ns(text: &str) -> anyhow::Result<i128> {
    let mut text = text.trim().to_owned();
    if let Some(utc) = text.strip_suffix("+UTC") {
        text = format!("{utc}Z");
    }
    // xperf's form: 2004/12/04:20:05:20.1234
    if text.as_bytes().get(4) == Some(&b'/') {
        text = text.replacen('/', "-", 2).replacen(':', "T", 1);
    }
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Ok(timestamp.as_nanosecond());
    }
    let local: jiff::civil::DateTime = text.parse()?;
    Ok(local.to_zoned(jiff::tz::TimeZone::system())?.timestamp().as_nanosecond())
}

fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// Exact: digits after the point are multiplied out, not rounded through a float.
fn scaled(number: &str, unit: u64) -> anyhow::Result<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty())
        || !is_digits(whole)
        || !is_digits(fraction)
        || fraction.len() > 18
    {
        bail!("{number:?} is no number");
    }
    let digits: u128 = format!("0{whole}{fraction}").parse().context("the number is too large")?;
    let value = digits.checked_mul(u128::from(unit)).context("the number is too large")?;
    u64::try_from(value / 10_u128.pow(fraction.len() as u32)).ok().context("the number is too large")
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

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, value) in
            [("0", 0), ("17", 17), ("4K", 4096), ("1.5k", 1536), ("2 MiB", 2 << 20), ("1G", 1 << 30)]
        {
            assert_eq!(parse_bytes(text).unwrap(), value, "{text}");
        }
        for text in ["", "K", "-1", "1X", "1.2.3", "99999999999999999999", "0x10"] {
            let error = format!("{:#}", parse_bytes(text).unwrap_err());
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn bare_times_are_microseconds() {
        for (text, value) in [
            ("1", 1_000),
            ("1.5", 1_500),
            ("2s", 2_000_000_000),
            ("3ms", 3_000_000),
            ("4us", 4_000),
            ("5ns", 5),
            ("1m", 60_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1 h 02 min 03.5 s", 3_723_500_000_000),
            ("1.5h", 5_400_000_000_000),
        ] {
            assert_eq!(parse_time_ns(text, 77).unwrap(), value, "{text}");
        }
        for text in
            ["5 minutes", "30m 1h", "1m 2m", "1h 30", "h", "1h m", "6000000h", "1.2.3s", "-1m", "1h-2m"]
        {
            let error = format!("{:#}", parse_time_ns(text, 0).unwrap_err());
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn seconds_need_no_unit_where_they_are_meant() {
        for (text, value_ms) in [("2", 2_000), ("0.5", 500), ("5m", 300_000), ("250ms", 250)] {
            assert_eq!(parse_seconds(text).unwrap(), Duration::from_millis(value_ms), "{text}");
        }
        assert!(parse_seconds("nan").is_err() && parse_seconds("1e3").is_err());
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for value_ns in [17, 1_500, 2_500_000, 61_500_000_000, 7_384_000_000_000] {
            assert_eq!(parse_duration_ns(&duration(value_ns)).unwrap(), value_ns);
        }
    }

    #[test]
    fn wall_clock_times_count_from_the_start_of_the_trace() {
        let start_unix_ns = 1_100_000_000_000_000_000; // 2004-11-09T11:33:20Z
        for text in ["2004-11-09T11:33:21.5Z", "2004/11/09:11:33:21.5+UTC", "2004-11-09T12:33:21.5+01:00"] {
            assert_eq!(parse_time_ns(text, start_unix_ns).unwrap(), 1_500_000_000, "{text}");
        }
        let error = parse_time_ns("2004-11-09T11:33:19Z", start_unix_ns).unwrap_err();
        assert_eq!(error.to_string(), "\"2004-11-09T11:33:19Z\" lies 1.000 s before the start of the trace");
        assert!(parse_time_ns("11:99", start_unix_ns).unwrap_err().to_string().contains("\"11:99\""));
    }
}
