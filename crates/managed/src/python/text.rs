//! Contents of str objects.

use crate::pages::Pages;
use heapr_known::cpython::Layout;

const LENGTH: u64 = 16;
const STATE: u64 = 32;
/// Bits of the state before the kind: interned.
const KIND_BIT: u32 = 2;

/// Head of a str object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    length: u64,
    /// Bytes of a character: 1, 2 or 4.
    width: u64,
    is_compact: bool,
    is_ascii: bool,
}

impl Text {
    /// Reads the head.
    pub(super) fn at(pages: &Pages<'_>, avma: u64) -> Option<Self> {
        let state = pages.half(avma + STATE)? >> KIND_BIT;
        Some(Self {
            length: pages.word(avma + LENGTH)?,
            width: u64::from(state & 7),
            is_compact: state >> 3 & 1 == 1,
            is_ascii: state >> 4 & 1 == 1,
        })
    }

    /// Whether the text has so many characters.
    pub(super) fn has_length(&self, characters: u64) -> bool {
        self.length == characters
    }

    /// Size of the object in bytes.
    pub(super) fn bytes(&self, layout: &Layout) -> u64 {
        let characters = self.length.saturating_add(1).saturating_mul(self.width.max(1));
        match (self.is_compact, self.is_ascii) {
            (true, true) => layout.ascii_bytes.saturating_add(characters),
            (true, false) => layout.compact_bytes.saturating_add(characters),
            (false, _) => layout.text_bytes.saturating_add(characters),
        }
    }

    /// Offset and number of the bytes of the characters; `None` if they lie elsewhere.
    pub(super) fn contents(&self, layout: &Layout) -> Option<(u64, u64)> {
        let head = if self.is_ascii { layout.ascii_bytes } else { layout.compact_bytes };
        self.is_compact.then(|| (head, self.length.saturating_mul(self.width)))
    }

    /// Reads up to `most` characters.
    pub(super) fn read(&self, pages: &Pages<'_>, layout: &Layout, avma: u64, most: u64) -> Option<String> {
        if !matches!(self.width, 1 | 2 | 4) || !self.is_compact {
            return None;
        }
        let head = if self.is_ascii { layout.ascii_bytes } else { layout.compact_bytes };
        let count = self.length.min(most);
        let mut bytes = vec![0; (count * self.width) as usize];
        if !pages.read(avma.checked_add(head)?, &mut bytes) {
            return None;
        }
        let code = |part: &[u8]| {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            char::from_u32(u32::from_le_bytes(word)).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        Some(bytes.chunks(self.width as usize).map(code).collect())
    }

    /// Reads the whole text, if it has at most `most` characters.
    pub(super) fn read_whole(
        &self,
        pages: &Pages<'_>,
        layout: &Layout,
        avma: u64,
        most: u64,
    ) -> Option<String> {
        (self.length <= most).then(|| self.read(pages, layout, avma, most)).flatten()
    }
}
