//! Types of a table's columns and values.

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Signed 64-bit number.
    Number,
    /// Microseconds since 1970 UTC.
    Time,
    /// Microseconds since 1970 UTC, or no value.
    TimeOrNone,
    /// Id of 16 bytes derived from a content, written as text: `0123abcd-…`.
    Id,
}

impl Kind {
    /// Name of the type in SQL.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text | Self::Id => "VARCHAR",
            Self::Number => "BIGINT",
            Self::Time | Self::TimeOrNone => "TIMESTAMP",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Time | Self::TimeOrNone)
    }
}

/// Column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, which includes the unit.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Description.
    pub help: &'static str,
}

/// Value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Value of a [`Kind::Text`] column.
    Text(&'a str),
    /// Value of a [`Kind::Number`] or time column.
    Number(i64),
    /// Value of a [`Kind::Id`] column.
    Id([u8; 16]),
    /// Missing value of a [`Kind::TimeOrNone`] column.
    Missing,
}

/// Formats an id as a UUID, which engines can cast to their UUID type:
/// `01234567-89ab-cdef-0123-456789abcdef`.
pub(super) fn id_text(id: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    // Two digits for each byte, with hyphens at fixed positions.
    let places = (0..36).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
    let digits = id.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (place, digit) in places.zip(digits) {
        text[place] = b"0123456789abcdef"[usize::from(digit)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_uuids_are() {
        let id: [u8; 16] = std::array::from_fn(|place| place as u8 * 17);
        assert_eq!(id_text(&id), *b"00112233-4455-6677-8899-aabbccddeeff");
    }
}
