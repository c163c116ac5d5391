/// Hash that names a build of the agent and detects a damaged file; it does not protect against an
/// attacker. Four words at a time, because each start of a session reads the whole file. Also part
/// of the build script.
pub(crate) fn content_hash(content: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(31);
    let [mut first, mut second, mut third, mut fourth] = [1_u64, 2, 3, 4];
    let (words, _) = content.as_chunks::<8>();
    let (blocks, _) = words.as_chunks::<4>();
    // Without a loop over the lanes: code that is optimized for its size would keep it.
    for block in blocks {
        first = mixed(first, u64::from_le_bytes(block[0]));
        second = mixed(second, u64::from_le_bytes(block[1]));
        third = mixed(third, u64::from_le_bytes(block[2]));
        fourth = mixed(fourth, u64::from_le_bytes(block[3]));
    }
    let rest = content[blocks.len() * 32..].iter().map(|&byte| u64::from(byte));
    [first, second, third, fourth].into_iter().chain(rest).fold(content.len() as u64, mixed)
}
