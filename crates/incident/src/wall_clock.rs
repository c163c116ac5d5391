//! Times of the wall clock, as numbers and as text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Time since 1970 in nanoseconds.
#[must_use]
pub fn unix_ns() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0)
}

/// Text of a time in this machine's zone: `14:03:12`, and with the date if that is not `near`'s.
#[must_use]
pub fn clock_text(time_unix_ns: u64, near_unix_ns: u64) -> String {
    let zoned = |time: u64| {
        let time = Timestamp::from_nanosecond(i128::from(time)).unwrap_or(Timestamp::UNIX_EPOCH);
        time.to_zoned(TimeZone::system())
    };
    let (time, near) = (zoned(time_unix_ns), zoned(near_unix_ns));
    let form = if time.date() == near.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(form).to_string()
}

/// Span of time in words.
pub(crate) fn span_text(span_ns: u64) -> String {
    let seconds = span_ns / 1_000_000_000;
    match seconds {
        0 => "less than a second".to_owned(),
        1 => "a second".to_owned(),
        2..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_day_has_its_date() {
        const DAY_NS: u64 = 86_400_000_000_000;
        let now = 20_000 * DAY_NS + 1;
        assert_eq!(clock_text(now, now).len(), 8);
        assert_eq!(clock_text(now, now + 3 * DAY_NS).len(), 19);
        assert!(unix_ns() > now / 2);
    }
}
