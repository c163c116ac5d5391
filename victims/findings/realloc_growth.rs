//! A buffer that reserves exactly one element more each time.
// build: rust
// finding: churn in Samples::add
mod pace;

struct Samples {
    values: Vec<u64>,
}

impl Samples {
    #[inline(never)]
    fn add(&mut self, value: u64) {
        self.values.reserve_exact(1);
        self.values.push(value);
    }
}

fn main() {
    let mut sum = 0;
    for round in 0..300_usize {
        let mut samples = Samples { values: Vec::new() };
        for value in 0..250 {
            samples.add(value);
        }
        sum += samples.values.len();
        pace::pace(round, 300);
    }
    println!("{sum}");
}
