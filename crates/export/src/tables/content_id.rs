//! Ids derived from contents: equal on every host, independent of local numbers.

use sha2::{Digest as _, Sha256};

/// First 128 bits of a SHA-256 hash.
pub(crate) type ContentId = [u8; 16];

/// Id of the empty stack.
pub(super) const NOTHING: ContentId = [0; 16];

/// Id of a sequence of parts. Each part is hashed with its length, so that the borders of parts
/// matter.
pub(crate) fn content_id(parts: &[&[u8]]) -> ContentId {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let whole = hash.finalize();
    let mut id = NOTHING;
    id.copy_from_slice(&whole[..16]);
    id
}
