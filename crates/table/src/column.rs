//! Columns: what the values of one are, what programs call it and what stands above it.

/// What the values of a column are, which decides how they look as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Names and words.
    Text,
    /// `1.50 MiB`; with a sign: a change.
    Bytes,
    /// `1,234`; with a sign: a change.
    Count,
    /// A number that is not counted, as a process's id.
    Number,
    /// `@1234`, as DevTools writes it.
    Id,
    /// Nanoseconds, as a span of time.
    Ns,
    /// Hundredths: the heading says so.
    Percent,
    /// 0 to 1, as hundredths: the heading says so.
    Share,
    /// Frames of a stack, the innermost first.
    Frames,
    /// What only JSON has.
    Detail,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name in JSON and CSV.
    pub key: &'static str,
    /// What stands above it as text.
    pub heading: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Whether people get it, too.
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

    /// A column that JSON alone has.
    #[must_use]
    pub const fn detail(key: &'static str) -> Self {
        Self { key, heading: "", kind: Kind::Detail, is_shown: false }
    }

    /// The same for JSON and CSV alone.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self { is_shown: false, ..self }
    }

    pub(crate) fn is_left_aligned(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Frames)
    }
}
