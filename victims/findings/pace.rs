//! Spreads the work of a small program over some tenths of a second, as a service's is spread over
//! days.

pub fn pace(done: usize, all: usize) {
    const PAUSES: usize = 120;
    if all < PAUSES || done % (all / PAUSES) == 0 {
        std::thread::sleep(std::time::Duration::from_micros(2500));
    }
}
