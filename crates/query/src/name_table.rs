//! Interned strings: each text is stored once, in one piece of memory.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// A text of a [`NameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

#[derive(Debug, Default, Clone)]
pub(crate) struct NameTable {
    text: String,
    /// End of each name in `text`; the name begins at the end of the previous one.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl NameTable {
    pub(crate) fn intern(&mut self, name: &str) -> Name {
        let hash = self.hasher.hash_one(name);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        if let Some(&number) = self.numbers.find(hash, |&number| slice(text, ends, number) == name) {
            return Name(number);
        }
        let number = ends.len() as u32;
        self.numbers.insert_unique(hash, number, |&number| hasher.hash_one(slice(text, ends, number)));
        self.text.push_str(name);
        self.ends.push(self.text.len());
        Name(number)
    }

    pub(crate) fn get(&self, name: Name) -> &str {
        slice(&self.text, &self.ends, name.0)
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], number: u32) -> &'a str {
    let start = if number == 0 { 0 } else { ends[number as usize - 1] };
    &text[start..ends[number as usize]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_get_the_same_name_and_come_back() {
        let mut table = NameTable::default();
        let names: Vec<Name> = ["a", "", "bc", "a", "bc", ""].iter().map(|text| table.intern(text)).collect();
        assert_eq!(names, [Name(0), Name(1), Name(2), Name(0), Name(2), Name(1)]);
        assert_eq!(
            names.iter().map(|&name| table.get(name)).collect::<Vec<_>>(),
            ["a", "", "bc", "a", "bc", ""]
        );
    }
}
