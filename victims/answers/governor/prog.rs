// answers requests, so many of each address
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;
#[inline(never)]
fn admit_request(limits: &DefaultKeyedRateLimiter<String>, number: u64) -> bool {
    limits.check_key(&format!("address {number}")).is_ok()
}
fn main() {
    let rounds: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let limits = RateLimiter::keyed(Quota::per_second(NonZeroU32::new(5).unwrap()));
    for n in 0..rounds {
        admit_request(&limits, n);
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
