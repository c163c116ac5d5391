//! The table of allocators: `allocators.txt`, and rows added by a user.

use std::sync::LazyLock;

use crate::grammar::{self, ParseError};
use crate::row::Allocator;

/// All allocators that are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// Allocators in order of precedence: the first one that names a function owns it.
    pub allocators: Vec<Allocator>,
}

pub(crate) const OWN: &str = include_str!("allocators.txt");
/// Rows of [`OWN`], parsed once.
static OWN_ROWS: LazyLock<Vec<Allocator>> = LazyLock::new(|| grammar::parse(OWN).unwrap_or_default());

impl Table {
    /// Creates the table, with the rows of a user's texts before the built-in ones.
    ///
    /// # Errors
    /// Returns an error if a line of a text is invalid.
    pub fn with(texts: &[String]) -> Result<Self, ParseError> {
        let mut allocators = Vec::new();
        for text in texts {
            allocators.extend(grammar::parse(text)?);
        }
        allocators.extend_from_slice(&OWN_ROWS);
        Ok(Self { allocators })
    }

    /// Checks a user's texts for [`Self::with`].
    ///
    /// # Errors
    /// Returns an error if a line of a text is invalid.
    pub fn check(texts: &[String]) -> Result<(), ParseError> {
        texts.iter().try_for_each(|text| grammar::parse(text).map(drop))
    }

    /// Removes allocators with separate heaps, whose blocks lie in memory from other allocators.
    #[must_use]
    pub fn of_main_heap(mut self) -> Self {
        self.allocators.retain(|allocator| allocator.heap.is_empty());
        self
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { allocators: OWN_ROWS.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_comes_with_heapr_is_whole() {
        let allocators = grammar::parse(OWN).unwrap();
        assert!(allocators.len() > 5);
        for allocator in &allocators {
            assert_eq!(allocator.functions.is_empty(), allocator.is_named, "{}", allocator.name);
            for function in &allocator.functions {
                let is_known = |name: &String| allocator.functions.iter().any(|row| row.name == *name);
                assert!(function.instead.iter().all(is_known), "{}", function.name);
            }
        }
    }
}
