//! Fuzzes the pages that the recorder shares with programs, which may write anything into them.
#![no_main]

use std::sync::atomic::Ordering::Relaxed;

use heapr_ring::{Pool, PoolProperties, reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((pool, _descriptor)) = Pool::create(PoolProperties { buffer_bytes: 4096, buffer_count: 4, open_count: 4, is_ample: false }) else { return };
    let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    for index in 0..4 {
        let Some(header) = pool.buffer_header(index) else { continue };
        for word in [&header.owner, &header.claimed_ticks] {
            word.store(words.next().unwrap_or(0), Relaxed);
        }
        for word in [&header.owner_generation, &header.published, &header.closed, &header.first_node] {
            word.store(words.next().unwrap_or(0) as u32, Relaxed);
        }
        for word in pool.buffer_words(index).unwrap_or_default() {
            word.store(words.next().unwrap_or(0), Relaxed);
        }
    }
    for buffer in reader::claimed_buffers(&pool) {
        let _ = reader::node(&pool, buffer.index, 0);
        let _ = reader::word(&pool, buffer.index, usize::MAX);
        reader::free_buffer(&pool, buffer.index);
    }
    reader::close_session(&pool);
});
