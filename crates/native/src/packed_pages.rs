//! Pages of memory in a packed form: heaps of objects take a third of their size.
//!
//! ```text
//! page = 512 words -> 512 tags of 4 bits | the bytes of each word that its tag does not say
//! ```
//! Words of heaps are mostly zero, small, or addresses near to each other. A page is packed alone,
//! so that any page can be unpacked without the others.

/// Size of a page in bytes.
pub const PACKED_PAGE_BYTES: usize = 4096;
/// Bytes of the tags of a page: half a byte for each word.
const TAG_BYTES: usize = PACKED_PAGE_BYTES / 8 / 2;
/// Number of words in the table of words that came before; a power of two.
const KNOWN_WORDS: usize = 256;
/// Number of beginnings of addresses that are remembered.
const BEGINNINGS: usize = 4;

/// Tags. A tag of `NEAR` or `NEARER` has the number of the beginning added.
mod tag {
    pub(super) const ZERO: u8 = 0;
    /// One low byte.
    pub(super) const BYTE: u8 = 1;
    /// Four low bytes.
    pub(super) const HALF: u8 = 2;
    /// A word that came before: index of one byte.
    pub(super) const KNOWN: u8 = 3;
    /// Three low bytes; the upper five are those of a beginning.
    pub(super) const NEAR: u8 = 4;
    /// Two low bytes; the upper six are those of a beginning.
    pub(super) const NEARER: u8 = 8;
    /// Four high bytes.
    pub(super) const HIGH_HALF: u8 = 12;
    /// Six low bytes.
    pub(super) const ADDRESS: u8 = 13;
    /// Six high bytes.
    pub(super) const HIGH: u8 = 14;
    /// All bytes.
    pub(super) const WHOLE: u8 = 15;
}

/// Beginnings of addresses, the last one first.
#[derive(Debug)]
struct Beginnings {
    /// Number of low bits that are left out.
    low_bits: u32,
    last: [u64; BEGINNINGS],
}

impl Beginnings {
    fn new(low_bits: u32) -> Self {
        Self { low_bits, last: [u64::MAX; BEGINNINGS] }
    }

    fn find(&self, word: u64) -> Option<usize> {
        self.last.iter().position(|&known| known == word >> self.low_bits)
    }

    /// Word with a beginning and low bits.
    fn word(&self, number: usize, low: u64) -> u64 {
        self.last[number] << self.low_bits | low
    }

    /// Makes the beginning of a word the last one.
    fn learn(&mut self, word: u64) {
        let mut moved = word >> self.low_bits;
        for known in &mut self.last {
            let wanted = word >> self.low_bits;
            let was = std::mem::replace(known, moved);
            if was == wanted {
                return;
            }
            moved = was;
        }
    }
}

/// Words that came before in a page. Packing and unpacking learn the same.
#[derive(Debug)]
struct Memory {
    words: [u64; KNOWN_WORDS],
    near: Beginnings,
    nearer: Beginnings,
}

impl Memory {
    fn new() -> Self {
        Self { words: [0; KNOWN_WORDS], near: Beginnings::new(24), nearer: Beginnings::new(16) }
    }

    fn slot(word: u64) -> usize {
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % KNOWN_WORDS
    }

    fn learn(&mut self, word: u64) {
        self.words[Self::slot(word)] = word;
        if is_address(word) {
            self.near.learn(word);
            self.nearer.learn(word);
        }
    }

    /// Tag of a word, the bytes that belong to it (the lowest of a word), and their number.
    fn tag_of(&self, word: u64) -> (u8, u64, usize) {
        let slot = Self::slot(word);
        if word == 0 {
            return (tag::ZERO, 0, 0);
        }
        if word <= 0xff {
            return (tag::BYTE, word, 1);
        }
        if self.words[slot] == word {
            return (tag::KNOWN, slot as u64, 1);
        }
        if is_address(word) {
            if let Some(number) = self.nearer.find(word) {
                return (tag::NEARER + number as u8, word & 0xffff, 2);
            }
            if let Some(number) = self.near.find(word) {
                return (tag::NEAR + number as u8, word & 0xff_ffff, 3);
            }
        }
        if word < 1 << 32 {
            (tag::HALF, word, 4)
        } else if word << 32 == 0 {
            (tag::HIGH_HALF, word >> 32, 4)
        } else if word < 1 << 48 {
            (tag::ADDRESS, word, 6)
        } else if word << 48 == 0 {
            (tag::HIGH, word >> 16, 6)
        } else {
            (tag::WHOLE, word, 8)
        }
    }

    /// Word of a tag, and the number of bytes that belong to it; these are the lowest of `bytes`.
    fn word_of(&self, tag: u8, bytes: u64) -> (u64, usize) {
        match tag {
            tag::ZERO => (0, 0),
            tag::BYTE => (bytes & 0xff, 1),
            tag::HALF => (bytes & 0xffff_ffff, 4),
            tag::KNOWN => (self.words[bytes as usize % KNOWN_WORDS], 1),
            tag::NEAR..tag::NEARER => (self.near.word((tag - tag::NEAR) as usize, bytes & 0xff_ffff), 3),
            tag::NEARER..tag::HIGH_HALF => {
                (self.nearer.word((tag - tag::NEARER) as usize, bytes & 0xffff), 2)
            }
            tag::HIGH_HALF => (bytes << 32, 4),
            tag::ADDRESS => (bytes & 0xffff_ffff_ffff, 6),
            tag::HIGH => (bytes << 16, 6),
            _ => (bytes, 8),
        }
    }
}

/// Whether a word may be an address: more than four bytes, and at most six.
fn is_address(word: u64) -> bool {
    (1 << 32..1 << 48).contains(&word)
}

/// Appends the packed form of a page; nothing for a page of zeros.
fn pack(page: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + TAG_BYTES, 0);
    let mut memory = Memory::new();
    for (number, bytes) in page.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        if word == 0 {
            continue;
        }
        let (tag, value, count) = memory.tag_of(word);
        out[start + number / 2] |= tag << (number % 2 * 4);
        out.extend_from_slice(&value.to_le_bytes()[..count]);
        if tag > tag::KNOWN || tag == tag::HALF {
            memory.learn(word);
        }
    }
    if out.len() == start + TAG_BYTES {
        out.truncate(start);
    } else if out.len() - start >= PACKED_PAGE_BYTES {
        out.truncate(start);
        out.extend_from_slice(page);
    }
}

/// Fills a page from its packed form, behind which at least a word follows.
fn unpack(packed: &[u8], byte_count: usize, page: &mut [u8; PACKED_PAGE_BYTES]) {
    if byte_count >= PACKED_PAGE_BYTES {
        page.copy_from_slice(&packed[..PACKED_PAGE_BYTES]);
        return;
    }
    let Some((tags, bytes)) = packed.split_at_checked(TAG_BYTES).filter(|_| byte_count > 0) else {
        page.fill(0);
        return;
    };
    let mut memory = Memory::new();
    let mut at = 0;
    for (words, &tags) in page.as_chunks_mut::<16>().0.iter_mut().zip(tags) {
        for (into, tag) in words.as_chunks_mut::<8>().0.iter_mut().zip([tags & 15, tags >> 4]) {
            let rest = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
            let (word, count) = memory.word_of(tag, rest.map_or(0, |rest| u64::from_le_bytes(*rest)));
            at += count;
            *into = word.to_le_bytes();
            if tag > tag::KNOWN || tag == tag::HALF {
                memory.learn(word);
            }
        }
    }
}

/// Consecutive pages in packed form.
#[derive(Debug)]
pub struct PackedPages {
    bytes: Vec<u8>,
    /// End of each page in the bytes.
    ends: Vec<u32>,
}

impl PackedPages {
    /// Packs memory of less than 4 GiB. Its last page may be cut: the rest of it is zeros.
    #[must_use]
    pub fn of(memory: &[u8]) -> Self {
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(memory.len().div_ceil(PACKED_PAGE_BYTES));
        for page in memory.chunks(PACKED_PAGE_BYTES) {
            if let Ok(whole) = <&[u8; PACKED_PAGE_BYTES]>::try_from(page) {
                pack(whole, &mut bytes);
            } else {
                let mut whole = [0; PACKED_PAGE_BYTES];
                whole[..page.len()].copy_from_slice(page);
                pack(&whole, &mut bytes);
            }
            ends.push(bytes.len() as u32);
        }
        // Unpacking reads whole words.
        bytes.extend([0; 8]);
        bytes.shrink_to_fit();
        Self { bytes, ends }
    }

    /// Fills a page from the one with that number; zeros behind the last.
    pub fn read(&self, number: usize, into: &mut [u8; PACKED_PAGE_BYTES]) {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(number).copied().unwrap_or(start);
        let packed = self.bytes.get(start as usize..).unwrap_or_default();
        unpack(packed, (end - start) as usize, into);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(packed: &PackedPages) -> Vec<u8> {
        let mut all = Vec::new();
        for number in 0..packed.ends.len() {
            let mut page = [7; PACKED_PAGE_BYTES];
            packed.read(number, &mut page);
            all.extend(page);
        }
        all
    }

    fn word() -> impl Strategy<Value = u64> {
        let near =
            (0_u64..4, 0_u64..1 << 20).prop_map(|(region, low)| 0x7f00_0000_0000 + (region << 30) + low * 8);
        prop_oneof![
            Just(0),
            0_u64..300,
            near,
            any::<u32>().prop_map(u64::from),
            any::<u64>(),
            any::<u64>().prop_map(|word| word << 32)
        ]
    }

    proptest! {
        #[test]
        fn any_memory_is_the_same_after_unpacking(words in prop::collection::vec(word(), 0..1500), cut in 0_usize..8) {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            bytes.truncate(bytes.len().saturating_sub(cut));
            let all = read_all(&PackedPages::of(&bytes));
            prop_assert_eq!(&all[..bytes.len()], &bytes[..]);
            prop_assert!(all[bytes.len()..].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn words_as_objects_have_them_take_a_third_and_zeros_nothing() {
        // Count, type, a size, and addresses of objects near by.
        let object =
            |number: u64| [1, 0x55_5555_9999, 3, 0x7f00_0010_0000 + number * 48, 0, 0x7f00_0020_0040];
        let words: Vec<u8> = (0..5000).flat_map(object).flat_map(u64::to_le_bytes).collect();
        let packed = PackedPages::of(&words);
        assert!(packed.bytes.len() * 3 < words.len(), "{} of {}", packed.bytes.len(), words.len());
        assert_eq!(PackedPages::of(&vec![0; 1 << 20]).bytes.len(), 8);
        // Bytes without any order are stored as they are.
        let mut state = 1_u64;
        let random = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        let noise: Vec<u8> = (0..PACKED_PAGE_BYTES * 3).map(random).collect();
        assert_eq!(PackedPages::of(&noise).bytes.len(), noise.len() + 8);
    }
}
