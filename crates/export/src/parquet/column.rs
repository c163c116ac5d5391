//! What a table's columns and values are.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A signed number of 64 bits.
    Number,
    /// Microseconds since 1970 UTC.
    Time,
    /// The same, or nothing.
    TimeOrNone,
    /// 16 bytes that stand for a content.
    Id,
}

impl Kind {
    /// As SQL calls it.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text => "VARCHAR",
            Self::Number => "BIGINT",
            Self::Time | Self::TimeOrNone => "TIMESTAMP",
            Self::Id => "UUID",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Time | Self::TimeOrNone)
    }
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name; with its unit.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it is, in words.
    pub help: &'static str,
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Of [`Kind::Text`].
    Text(&'a str),
    /// Of [`Kind::Number`] and times.
    Number(i64),
    /// Of [`Kind::Id`].
    Id([u8; 16]),
    /// Of [`Kind::TimeOrNone`].
    Missing,
}
