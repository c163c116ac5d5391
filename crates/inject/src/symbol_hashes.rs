//! The hash table by which a module's symbols are found (`DT_GNU_HASH`), in the memory of its
//! process. Its head and filter are read once: most names that are looked for are in few modules.
//!
//! ```text
//! count of buckets, first symbol, words of the filter, shift   4 bytes each
//! filter                                                       8 bytes a word
//! buckets                                                      4 bytes each: number of a symbol
//! chains                                                       4 bytes each: hash, last bit: end
//! ```

use crate::memory::TargetMemory;

/// Words of a filter that is kept; of a larger one words are read when they are asked for.
const FILTER_WORDS_MAX: u32 = 4096;
/// Longest run of symbols that is gone through.
const CHAIN_MAX: u32 = 100_000;
/// Hashes that are read at once.
const CHAIN_PIECE: u64 = 8;

/// The hash of a symbol's name.
pub(crate) fn hash_of(name: &str) -> u32 {
    name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolHashes {
    bucket_count: u32,
    /// Symbols before it are not in the table.
    first: u32,
    filter_words: u32,
    shift: u32,
    filter_avma: u64,
    /// The whole filter, or nothing; 8 bytes a word.
    filter: Vec<u8>,
}

impl SymbolHashes {
    /// Reads the head and the filter; `None`: there is no such table.
    pub(crate) fn read(memory: &impl TargetMemory, table_avma: u64) -> Option<Self> {
        let mut head = [0; 16];
        memory.read(table_avma, &mut head).ok()?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let [bucket_count, first, filter_words, shift] = [word(0), word(4), word(8), word(12)];
        if bucket_count == 0 || filter_words == 0 {
            return None;
        }
        let filter_avma = table_avma.checked_add(16)?;
        let mut filter = Vec::new();
        if filter_words <= FILTER_WORDS_MAX {
            filter = memory.read_vec(filter_avma, filter_words as usize * 8).ok()?;
        }
        Some(Self { bucket_count, first, filter_words, shift, filter_avma, filter })
    }

    /// Shows the numbers of the symbols with a hash until `visit` returns something.
    pub(crate) fn find<T>(
        &self,
        memory: &impl TargetMemory,
        hash: u32,
        mut visit: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        if !self.may_have(memory, hash)? {
            return None;
        }
        let buckets_avma = self.filter_avma.checked_add(u64::from(self.filter_words) * 8)?;
        let chains_avma = buckets_avma.checked_add(u64::from(self.bucket_count) * 4)?;
        let bucket_avma = buckets_avma + u64::from(hash % self.bucket_count) * 4;
        let begin = memory.read_u32(bucket_avma).ok()?;
        let mut place = begin.checked_sub(self.first)?;
        let mut piece = Vec::new();
        for seen in 0..CHAIN_MAX {
            let at = seen as usize % CHAIN_PIECE as usize;
            let avma = chains_avma.checked_add(u64::from(place) * 4)?;
            if at == 0 {
                // The last pieces may reach beyond what is mapped.
                piece = memory.read_vec(avma, CHAIN_PIECE as usize * 4).unwrap_or_default();
            }
            let chain = match piece.get(at * 4..at * 4 + 4) {
                Some(bytes) => u32::from_le_bytes(bytes.try_into().ok()?),
                None => memory.read_u32(avma).ok()?,
            };
            if chain | 1 == hash | 1
                && let Some(found) = visit(self.first.checked_add(place)?)
            {
                return Some(found);
            }
            if chain & 1 != 0 {
                return None;
            }
            place = place.checked_add(1)?;
        }
        None
    }

    /// Whether the filter lets a hash pass; `None`: it cannot be read.
    fn may_have(&self, memory: &impl TargetMemory, hash: u32) -> Option<bool> {
        let number = hash / 64 % self.filter_words;
        let word = match self.filter.as_chunks::<8>().0.get(number as usize) {
            Some(&word) => u64::from_le_bytes(word),
            None => memory.read_u64(self.filter_avma + u64::from(number) * 8).ok()?,
        };
        Some(word >> (hash % 64) & word >> (hash.checked_shr(self.shift).unwrap_or(0) % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ProcessMemory;

    /// A table of one bucket with these hashes, the last one the end of the chain.
    fn table(hashes: &[u32], filter_words: u32) -> Vec<u8> {
        let mut words = vec![1, 1, filter_words, 6];
        words.extend(vec![u32::MAX; filter_words as usize * 2]);
        words.push(1);
        words.extend(
            hashes.iter().enumerate().map(
                |(at, hash)| {
                    if at + 1 == hashes.len() { hash | 1 } else { hash & !1 }
                },
            ),
        );
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn symbols_are_found_in_short_and_long_chains_and_with_filters_that_are_not_kept() {
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        for (count, filter_words) in [(1, 1), (8, 1), (9, 4096), (50, 4097)] {
            let hashes: Vec<u32> = (0..count).map(|number| hash_of(&format!("name{number}"))).collect();
            let bytes = table(&hashes, filter_words);
            let read = SymbolHashes::read(&memory, bytes.as_ptr() as u64).unwrap();
            assert_eq!(read.filter.is_empty(), filter_words > FILTER_WORDS_MAX);
            for (number, &hash) in (1_u32..).zip(&hashes) {
                let found = read.find(&memory, hash, |symbol| (symbol == number).then_some(symbol));
                assert_eq!(found, Some(number), "{number} of {count}");
            }
            assert_eq!(read.find(&memory, hash_of("another"), Some), None);
        }
        assert_eq!(SymbolHashes::read(&memory, [0_u8; 16].as_ptr() as u64), None);
    }

    #[test]
    fn what_the_filter_holds_back_is_not_looked_for() {
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let mut bytes = table(&[hash_of("a")], 1);
        bytes[16..24].fill(0);
        let read = SymbolHashes::read(&memory, bytes.as_ptr() as u64).unwrap();
        assert_eq!(read.find(&memory, hash_of("a"), Some), None);
    }
}
