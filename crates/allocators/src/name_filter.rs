//! Filter of the symbols that the built-in table names, made by the compiler. Most programs lack
//! all of them, so that their symbols are judged without parsing the table.
//!
//! The filter holds two bits for each name. A symbol may matter if one of its ends is in the
//! filter: some allocators' functions have any prefix.

/// Number of words: some 450 names set less than a fiftieth of the bits.
const WORDS: usize = 1 << 10;
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Filter of names by their ends.
#[derive(Debug)]
pub(crate) struct NameFilter([u64; WORDS]);

impl NameFilter {
    /// The filter of all symbols that a text of the table's language names.
    pub(crate) const fn of(text: &[u8]) -> Self {
        let mut filter = Self([0; WORDS]);
        let mut at = 0;
        while at < text.len() {
            at = filter.add_line(text, at);
        }
        filter
    }

    /// Adds the symbols of the line that begins at `start`. Returns the start of the next line.
    const fn add_line(&mut self, text: &[u8], start: usize) -> usize {
        let mut end = start;
        while end < text.len() && text[end] != b'\n' {
            end += 1;
        }
        let first = word_end(text, start, end);
        if first < end && text[first] == b'(' {
            self.add(text, start, first);
        } else if first > start && names_symbols(text, start, first) {
            let mut at = first + 1;
            while at < end {
                let behind = word_end(text, at, end);
                if behind > at {
                    self.add(text, at, behind);
                }
                at = behind + 1;
            }
        }
        end + 1
    }

    const fn add(&mut self, text: &[u8], start: usize, end: usize) {
        let mut hash = OFFSET;
        let mut at = end;
        while at > start {
            at -= 1;
            hash = with(hash, text[at]);
        }
        let [one, other] = bits(hash);
        self.0[one / 64] |= 1 << (one % 64);
        self.0[other / 64] |= 1 << (other % 64);
    }

    /// Whether the text may name a symbol that `name` ends with.
    pub(crate) fn may_end(&self, name: &str) -> bool {
        let mut hash = OFFSET;
        name.bytes().rev().any(|byte| {
            hash = with(hash, byte);
            bits(hash).iter().all(|&bit| self.0[bit / 64] >> (bit % 64) & 1 != 0)
        })
    }
}

const fn with(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(PRIME)
}

const fn bits(hash: u64) -> [usize; 2] {
    let folded = hash ^ hash >> 29;
    [(folded >> 16) as usize % (WORDS * 64), (folded >> 40) as usize % (WORDS * 64)]
}

/// End of the word at `at`: a blank, a bracket, or the end of the line.
const fn word_end(text: &[u8], at: usize, line_end: usize) -> usize {
    let mut end = at;
    while end < line_end && text[end] != b' ' && text[end] != b'(' {
        end += 1;
    }
    end
}

/// Whether a line with this first word lists symbols.
const fn names_symbols(text: &[u8], start: usize, end: usize) -> bool {
    const KEYWORDS: [&[u8]; 4] = [b"any-prefix", b"needs", b"any-of", b"absent"];
    let mut number = 0;
    while number < KEYWORDS.len() {
        let keyword = KEYWORDS[number];
        let mut same = 0;
        while same < keyword.len() && start + same < end && text[start + same] == keyword[same] {
            same += 1;
        }
        if same == keyword.len() && start + same == end {
            return true;
        }
        number += 1;
    }
    false
}

/// Hash of a text.
pub(crate) const fn text_hash(text: &[u8]) -> u64 {
    let mut hash = OFFSET;
    let mut at = 0;
    while at < text.len() {
        hash = with(hash, text[at]);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_kinds_of_lines_are_in_the_filter_with_any_prefix() {
        let text = "# not_this(size)\nallocator a name\nany-prefix pool_init\nneeds one two\nany-of three\nabsent four\n\
                    take(-, size) as malloc\ngive(block)\n";
        let filter = NameFilter::of(text.as_bytes());
        for name in ["pool_init", "my_pool_init", "one", "two", "three", "four", "take", "mytake", "give"] {
            assert!(filter.may_end(name), "{name}");
        }
        let others: Vec<String> = (0..1000).map(|number| format!("library_function{number}")).collect();
        let others = others.iter().map(String::as_str);
        for name in others.chain(["", "main", "_start", "not_this", "name", "size", "malloc", "tak"]) {
            assert!(!filter.may_end(name), "{name}");
        }
    }
}
