//! Texts at or near the start of a graph's blocks, recorded on request.

/// Texts by block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphTexts {
    nodes: Vec<u32>,
    /// End of each text in `text`.
    ends: Vec<usize>,
    text: String,
}

impl GraphTexts {
    /// Adds the text of a block behind those of lower numbers.
    pub fn push(&mut self, node: u32, text: &str) {
        debug_assert!(self.nodes.last().is_none_or(|&last| last < node));
        self.nodes.push(node);
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the collection is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Blocks and their texts, by block.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.nodes.iter().enumerate().map(|(place, &node)| (node, self.at(place)))
    }

    /// The last block that has a text.
    pub(crate) fn last_node(&self) -> Option<u32> {
        self.nodes.last().copied()
    }

    /// The text of a block.
    #[must_use]
    pub fn of(&self, node: u32) -> Option<&str> {
        self.nodes.binary_search(&node).ok().map(|place| self.at(place))
    }

    /// A copy without the texts for which `is_out` is true.
    #[must_use]
    pub fn without(self, is_out: impl Fn(u32, &str) -> bool) -> Self {
        let mut kept = Self::default();
        self.iter()
            .filter(|&(node, text)| !is_out(node, text))
            .for_each(|(node, text)| kept.push(node, text));
        kept
    }

    fn at(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[place]]
    }
}
