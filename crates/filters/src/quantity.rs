//! Parser of bytes and times in the forms that people write; `heapr_table::quantity` formats them.

use std::time::Duration;

use anyhow::{Context as _, bail};
use heapr_table::quantity::duration;

/// Parses bytes: a number, with K, M, G or T (or KiB …) for powers of 1024.
///
/// # Errors
/// The text has a wrong syntax.
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

/// Parses a span of time to ns: a number in microseconds, or numbers with units, as in `1.5s` and
/// `1h 30m`.
///
/// # Errors
/// The text has a wrong syntax.
pub fn parse_duration_ns(text: &str) -> anyhow::Result<u64> {
    parse_span_ns(text, 1_000)
}

/// Parses a span of time for options in seconds: a bare number is in seconds, otherwise like
/// [`parse_duration_ns`].
///
/// # Errors
/// The text has a wrong syntax.
pub fn parse_seconds(text: &str) -> anyhow::Result<Duration> {
    parse_span_ns(text, 1_000_000_000).map(Duration::from_nanos)
}

/// Parses a span of time. `bare_ns`: the unit of a number without one.
fn parse_span_ns(text: &str, bare_ns: u64) -> anyhow::Result<u64> {
    let mut sum_ns = 0_u64;
    // Units must descend, so that no unit occurs twice: `1h 30m`, not `30m 1h`.
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

/// Parses a time of a trace to ns since its start: a span as for [`parse_duration_ns`], or
/// wall-clock. Examples are `2026/11/21:07:22:05.25` and `2026-11-21T07:22:05.25` (local time). `Z`
/// or `+UTC` means UTC, and `+01:00` an offset.
///
/// # Errors
/// The text has a wrong syntax.
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
    // Form of xperf: 2004/12/04:20:05:20.1234
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

/// Multiplies a decimal number by a unit, exactly: digits after the point are not rounded through a
/// float.
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
