//! Values of a table.

use serde::Serialize;
use serde_json::{Value, json};

use crate::column::Kind;
use crate::csv::quoted;
use crate::plain::one_line;
use crate::quantity::{bytes, count, duration, signed_bytes, signed_count, within};

/// Stands for the frames of an allocation without a stack.
pub(crate) const NO_STACK: &str = "(no stack was taken)";

/// A value in a row; its meaning depends on the column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// An unknown or missing value.
    Nothing,
    /// An amount.
    Unsigned(u64),
    /// A change.
    Signed(i64),
    /// A number with a fraction.
    Real(f64),
    /// An amount at several moments: JSON and CSV have all, text has the last.
    Series(Vec<u64>),
    /// A name or a word.
    Text(String),
    /// Frames, the innermost first.
    Frames(Vec<String>),
    /// Frames as lines for people, with an object for each for JSON.
    ToldFrames(Vec<String>, Value),
    /// A value for JSON and a text for people. CSV has the text, too, if the value is a list or an
    /// object.
    Worded(Value, String),
    /// An estimated number, and half of its 95 % interval in the same unit. JSON and CSV have the
    /// half as a value of its own, `KEY_plus_minus`.
    Estimate(Box<Self>, u64),
}

impl Cell {
    /// A value with a separate text for people.
    #[must_use]
    pub fn worded(value: impl Into<Value>, text: impl Into<String>) -> Self {
        Self::Worded(value.into(), text.into())
    }

    /// The number as an estimate; with 0 it is a counted number.
    #[must_use]
    pub fn within(self, plus_minus: u64) -> Self {
        if plus_minus == 0 { self } else { Self::Estimate(Box::new(self), plus_minus) }
    }

    /// Half of the interval of an estimate.
    pub(crate) fn plus_minus(&self) -> Option<u64> {
        match self {
            Self::Estimate(_, plus_minus) => Some(*plus_minus),
            _ => None,
        }
    }

    /// The frames, a line each.
    pub(crate) fn frames(&self) -> Option<&[String]> {
        match self {
            Self::Frames(lines) | Self::ToldFrames(lines, _) => Some(lines),
            _ => None,
        }
    }

    pub(crate) fn text(&self, kind: Kind, width: usize) -> String {
        match (self, kind) {
            (Self::Nothing, _) => String::new(),
            (Self::Unsigned(value), Kind::Bytes) => bytes(*value),
            (Self::Unsigned(value), Kind::Count) => count(*value),
            (Self::Unsigned(value), Kind::Ns) => duration(*value),
            (Self::Unsigned(value), Kind::Id) => format!("@{value}"),
            (Self::Unsigned(value), _) => value.to_string(),
            (Self::Signed(value), Kind::Bytes) => signed_bytes(i128::from(*value)),
            (Self::Signed(value), Kind::Count) => signed_count(i128::from(*value)),
            (Self::Signed(value), _) => value.to_string(),
            (Self::Real(value), Kind::Bytes) => signed_bytes(*value as i128),
            (Self::Real(value), Kind::Percent) => format!("{value:.1}"),
            (Self::Real(value), Kind::Share) => format!("{:.0}", value * 100.0),
            (Self::Real(value), _) => format!("{value:.2}"),
            (Self::Series(values), _) => {
                values.last().map_or_else(String::new, |last| Self::Unsigned(*last).text(kind, width))
            }
            (Self::Estimate(number, plus_minus), _) => {
                let half = Self::Unsigned(*plus_minus).text(kind, width);
                within(&number.text(kind, width), &half)
            }
            (Self::Text(text) | Self::Worded(_, text), _) => one_line(text, width),
            (Self::Frames(frames) | Self::ToldFrames(frames, _), _) => {
                frames.first().map_or(NO_STACK, String::as_str).to_owned()
            }
        }
    }

    pub(crate) fn csv(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) | Self::Worded(Value::String(text), _) => quoted(text),
            Self::Frames(frames) | Self::ToldFrames(frames, _) => quoted(&frames.join(" <- ")),
            Self::Worded(Value::Array(_) | Value::Object(_), text) => quoted(text),
            Self::Estimate(number, _) => number.csv(),
            Self::Series(values) => values.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
            other => json!(other).to_string(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_none(),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Real(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Series(values) => values.serialize(serializer),
            Self::Frames(frames) => frames.serialize(serializer),
            Self::Worded(value, _) | Self::ToldFrames(_, value) => value.serialize(serializer),
            Self::Estimate(number, _) => number.serialize(serializer),
        }
    }
}

macro_rules! cells {
    ($($from:ty => |$value:ident| $cell:expr;)*) => { $(
        impl From<$from> for Cell {
            fn from($value: $from) -> Self {
                $cell
            }
        }
    )* };
}

cells! {
    u64 => |value| Self::Unsigned(value);
    u32 => |value| Self::Unsigned(value.into());
    usize => |value| Self::Unsigned(value as u64);
    i64 => |value| Self::Signed(value);
    i128 => |value| Self::Signed(i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX }));
    f64 => |value| Self::Real(value);
    String => |text| Self::Text(text);
    &str => |text| Self::Text(text.to_owned());
    Vec<u64> => |values| Self::Series(values);
    Value => |value| Self::worded(value, "");
    Vec<String> => |frames| Self::Frames(frames);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// Builds a row of a table: its values in the order of the columns.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::Cell::from($value)),*] };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Table};

    #[test]
    fn an_estimate_tells_its_interval_everywhere() {
        let columns = [Column::bytes("live_bytes", "Live"), Column::count("count", "Blocks")];
        let estimate = |value: u64, plus_minus| Cell::from(value).within(plus_minus);
        let rows = [vec![estimate(3 << 20, 1 << 20), estimate(7, 0)], vec![estimate(5, 0), estimate(7, 0)]];
        let table = Table::of("heapr.test/1", &columns, rows);
        assert_eq!(
            table.lines(0, 80),
            ["               Live  Blocks", "3.00 MiB ± 1.00 MiB       7", "                5 B       7"]
        );
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv, "live_bytes,live_bytes_plus_minus,count\n3145728,1048576,7\n5,0,7\n");
        let json = json!(table);
        assert_eq!(
            json["rows"],
            json!([
                { "live_bytes": 3_145_728, "live_bytes_plus_minus": 1_048_576, "count": 7 },
                { "live_bytes": 5, "count": 7 }
            ])
        );
    }
}
