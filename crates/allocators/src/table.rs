//! The table: what stands in `allocators.txt`, and what a user has added.

use crate::grammar::{self, ParseError};
use crate::row::Allocator;

/// All allocators that are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// In the order in which they are looked for: the first that names a function has it.
    pub allocators: Vec<Allocator>,
}

const OWN: &str = include_str!("allocators.txt");

impl Table {
    /// The table, with the rows of a user's texts before its own.
    ///
    /// # Errors
    /// A line of a text is none.
    pub fn with(texts: &[String]) -> Result<Self, ParseError> {
        let mut allocators = Vec::new();
        for text in texts {
            allocators.extend(grammar::parse(text)?);
        }
        allocators.extend(grammar::parse(OWN).unwrap_or_default());
        Ok(Self { allocators })
    }

    /// Without those whose blocks belong to heaps of their own, inside of what others have given.
    #[must_use]
    pub fn of_main_heap(mut self) -> Self {
        self.allocators.retain(|allocator| allocator.heap.is_empty());
        self
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { allocators: grammar::parse(OWN).unwrap_or_default() }
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
