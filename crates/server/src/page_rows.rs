//! The rows of a list that an answer contains: a part of many requests.

use serde::Deserialize;

/// Largest number of rows in an answer.
pub(crate) const ROWS_MAX: usize = 10_000;

/// Requested rows of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PageRows {
    /// Number of rows before the first one of the answer.
    pub(crate) offset: usize,
    limit: usize,
    /// Text that rows contain; empty: any.
    pub(crate) r#match: String,
}

impl Default for PageRows {
    fn default() -> Self {
        Self { offset: 0, limit: 200, r#match: String::new() }
    }
}

/// Direction of a list: from its largest row, or from its smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Descending(pub(crate) bool);

impl Default for Descending {
    fn default() -> Self {
        Self(true)
    }
}

impl PageRows {
    /// Largest number of rows in the answer.
    pub(crate) fn limit(&self) -> usize {
        self.limit.min(ROWS_MAX)
    }

    /// Rows of the answer, among all rows in descending order.
    pub(crate) fn of<'a, T>(
        &self,
        rows: &'a [T],
        direction: Descending,
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let count = rows.len();
        let place = move |at: usize| if direction.0 { at } else { count - 1 - at };
        (0..count).skip(self.offset).take(self.limit()).map(move |at| &rows[place(at)])
    }

    /// Text that rows contain, in lower case; empty: any.
    pub(crate) fn text(&self) -> String {
        self.r#match.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_at_either_end() {
        let page = |offset, limit| PageRows { offset, limit, ..PageRows::default() };
        let of = |offset, limit, is_descending| -> Vec<u32> {
            page(offset, limit).of(&[5, 4, 3, 2, 1], Descending(is_descending)).copied().collect()
        };
        assert_eq!(of(1, 2, true), [4, 3]);
        assert_eq!(of(1, 2, false), [2, 3]);
        assert_eq!(of(4, 9, false), [5]);
        assert!(of(5, 1, true).is_empty() && of(usize::MAX, usize::MAX, false).is_empty());
        assert_eq!(page(0, usize::MAX).limit(), ROWS_MAX);
    }
}
