//! Part and order of a list.

/// Range of a list's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Index of the first line, from 0.
    pub first: usize,
    /// Largest number of lines.
    pub count: usize,
}

impl Page {
    /// Returns the first `count` lines.
    pub fn top(count: usize) -> Self {
        Self { first: 0, count }
    }

    /// Range of positions in a list of that length.
    pub(crate) fn range(self, length: usize) -> std::ops::Range<usize> {
        let first = self.first.min(length);
        first..self.first.saturating_add(self.count).min(length).max(first)
    }
}

/// Order of a list of objects; equal objects are in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectOrder {
    /// Most retained bytes first.
    Retained,
    /// Largest self size first.
    Shallow,
    /// Smallest id first.
    Id,
    /// Nearest to a root first.
    Distance,
    /// By the name that lists show.
    Name,
}
