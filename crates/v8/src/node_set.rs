//! A set of nodes, one bit each.

/// A set of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// The empty set, for a graph of that many nodes.
    pub fn new(node_count: u32) -> Self {
        Self { words: vec![0; (node_count as usize).div_ceil(64)] }
    }

    /// Whether `node` is in the set.
    #[inline]
    pub fn contains(&self, node: u32) -> bool {
        self.words[node as usize / 64] >> (node % 64) & 1 != 0
    }

    /// Adds `node`; whether it was new.
    #[inline]
    pub fn insert(&mut self, node: u32) -> bool {
        let word = &mut self.words[node as usize / 64];
        let bit = 1 << (node % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether no node is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// How many nodes are in the set.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The nodes in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut word = word;
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}
