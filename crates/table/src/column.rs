//! Columns of a table: kind of the values, key for programs and heading.

/// Kind of a column's values, which decides their form as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Names and words.
    Text,
    /// Bytes as `1.50 MiB`; with a sign for a change.
    Bytes,
    /// Number as `1,234`; with a sign for a change.
    Count,
    /// A number that is no quantity, such as a process id.
    Number,
    /// Id as `@1234`, in DevTools' form.
    Id,
    /// Span of time in nanoseconds.
    Ns,
    /// Hundredths; the heading has the % sign.
    Percent,
    /// Fraction from 0 to 1, shown as hundredths; the heading has the % sign.
    Share,
    /// Frames of a stack, the innermost first.
    Frames,
    /// A value that only JSON has.
    Detail,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name in JSON and CSV.
    pub key: &'static str,
    /// Heading in text.
    pub heading: &'static str,
    /// Kind of the values.
    pub kind: Kind,
    /// Whether text has the column, too.
    pub(crate) is_shown: bool,
}

macro_rules! kinds {
    ($($name:ident $kind:ident)*) => { $(
        #[doc = concat!("A column of [`Kind::", stringify!($kind), "`].")]
        #[must_use]
        pub const fn $name(key: &'static str, heading: &'static str) -> Self {
            Self { key, heading, kind: Kind::$kind, is_shown: true }
        }
    )* };
}

impl Column {
    kinds! {
        text Text
        bytes Bytes
        count Count
        number Number
        id Id
        ns Ns
        percent Percent
        share Share
        frames Frames
    }

    /// A column that only JSON has.
    #[must_use]
    pub const fn detail(key: &'static str) -> Self {
        Self { key, heading: "", kind: Kind::Detail, is_shown: false }
    }

    /// The column for JSON and CSV only.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self { is_shown: false, ..self }
    }

    pub(crate) fn is_left_aligned(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Frames)
    }
}
