//! Counts and sizes in files that others write.

use serde_json::Number;

/// Returns a JSON number that is whole and not negative, in any notation (`1500`, `1.5e3`). Returns
/// `None` for other numbers, and for those that a float cannot represent exactly.
#[must_use]
pub fn whole_number(number: &Number) -> Option<u64> {
    /// Largest number below which a float represents all whole numbers.
    const EXACT: f64 = (1_u64 << 53) as f64;
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number <= EXACT).then_some(number as u64)
    })
}

/// Parses the text of such a number.
pub(super) fn whole_number_in(text: &str) -> Option<u64> {
    let number = whole_number(&serde_json::from_str(text).ok()?)?;
    // A number too small for a float rounds to 0, which is whole.
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (number != 0 || is_zero).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_as_json_has_them_or_refused() {
        let right = [("0", 0), ("17", 17), ("1.5e3", 1500), ("2E+2", 200), ("3.0", 3), ("-0", 0), ("0e7", 0)];
        for (text, number) in right {
            assert_eq!(whole_number_in(text), Some(number), "{text}");
        }
        assert_eq!(whole_number_in("18446744073709551615"), Some(u64::MAX));
        let wrong = [
            "25e-1",
            "-1",
            "1.5",
            "1e400",
            "1e-400",
            "1.2.3",
            "--1",
            "18446744073709551616",
            "1e19",
            "01",
            "",
        ];
        for text in wrong {
            assert_eq!(whole_number_in(text), None, "{text}");
        }
    }
}
