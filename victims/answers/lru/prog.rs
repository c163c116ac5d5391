// a cache of the last hundred answers, emptied after each batch
use lru::LruCache;
#[inline(never)]
fn serve_batch(cache: &mut LruCache<u64, String>, batch: u64) {
    for k in 0..100 { cache.put(batch * 100 + k, format!("answer {k} of batch {batch}, with some text")); }
    cache.clear();
}
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut cache = LruCache::new(100);
    for batch in 0..n {
        serve_batch(&mut cache, batch);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    println!("{}", cache.len());
}
