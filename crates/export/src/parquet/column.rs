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
    /// 16 bytes that stand for a content, as text: `0123abcd-…`.
    Id,
}

impl Kind {
    /// As SQL calls it.
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

/// An id in the form that engines cast to their type of it: `01234567-89ab-cdef-0123-456789abcdef`.
pub(super) fn id_text(id: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    // Two digits for each byte, and a line before some.
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
