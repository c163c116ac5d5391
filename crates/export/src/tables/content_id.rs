//! Ids that tell contents: the same on every host, whatever numbers things have there.

use sha2::{Digest as _, Sha256};

/// 128 bits of a hash.
pub(crate) type ContentId = [u8; 16];

/// The id of no stack.
pub(super) const NOTHING: ContentId = [0; 16];

/// Of some parts: each with its length, so that none runs into the next.
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
