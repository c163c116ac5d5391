//! Which part of a list, in which order.

/// Which lines of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The first line's number, from 0.
    pub first: usize,
    /// How many lines at most.
    pub count: usize,
}

impl Page {
    /// The first `count` lines.
    pub fn top(count: usize) -> Self {
        Self { first: 0, count }
    }

    /// The positions of a list of that length.
    pub(crate) fn range(self, length: usize) -> std::ops::Range<usize> {
        let first = self.first.min(length);
        first..self.first.saturating_add(self.count).min(length).max(first)
    }
}

/// What comes first in a list of objects; of equals the one that comes first in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectOrder {
    /// Most bytes kept alive.
    Retained,
    /// Most bytes of its own.
    Shallow,
    /// The smallest id.
    Id,
    /// Nearest to a root.
    Distance,
    /// By the name that lists show.
    Name,
}
