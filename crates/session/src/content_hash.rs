/// Hash that names a build of the agent and detects a damaged file; it does not protect against an
/// attacker. Four words at a time, because each start of a session reads the whole file. Also part
/// of the build script.
pub(crate) fn content_hash(content: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(31);
    let mut lanes = [1_u64, 2, 3, 4];
    let (blocks, rest) = content.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mixed(*lane, u64::from_le_bytes(*word));
        }
    }
    let rest = rest.iter().map(|&byte| u64::from(byte));
    lanes.into_iter().chain(rest).fold(content.len() as u64, mixed)
}
