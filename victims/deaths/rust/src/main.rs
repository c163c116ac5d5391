//! Death: a Rust program on jemalloc with a map that only grows.
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[inline(never)]
fn remember(orders: &mut HashMap<u64, Vec<u8>>, number: u64) {
    orders.insert(number, vec![1; 20_000]);
}

fn main() {
    while !std::path::Path::new("go").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut orders = HashMap::new();
    for number in 0.. {
        remember(&mut orders, number);
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
}
