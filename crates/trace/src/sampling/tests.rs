use super::*;

/// A sampler like the agent's: a countdown of bytes, drawn anew after each sample.
struct Countdown {
    state: u64,
    mean_bytes: u64,
    left_bytes: i64,
}

impl Countdown {
    fn new(seed: u64, mean_bytes: u64) -> Self {
        let mut countdown = Self { state: mixed(seed), mean_bytes, left_bytes: 0 };
        countdown.draw();
        countdown
    }

    fn draw(&mut self) {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let uniform = ((mixed(self.state) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        self.left_bytes = (-uniform.ln() * self.mean_bytes as f64) as i64;
    }

    fn takes(&mut self, size_bytes: u64) -> bool {
        self.left_bytes -= size_bytes as i64 + 1;
        let is_taken = self.left_bytes < 0;
        if is_taken {
            self.draw();
        }
        is_taken
    }
}

/// A stack of a synthetic trace: `count` blocks, of the sizes in turn.
struct Site {
    sizes: &'static [u64],
    count: usize,
}

const MEAN_BYTES: u64 = 4 << 10;
const SEEDS: u64 = 1000;

/// The sites of a program: small blocks, mixed ones, blocks around the mean, and huge ones.
const SITES: [Site; 6] = [
    Site { sizes: &[40], count: 3_000 },
    Site { sizes: &[1, 16, 200], count: 1_500 },
    Site { sizes: &[1, 24, 100, 9_000], count: 200 },
    Site { sizes: &[4 << 10], count: 60 },
    Site { sizes: &[1 << 10, 16 << 10], count: 80 },
    Site { sizes: &[1 << 20], count: 20 },
];

#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    bytes: u64,
    count_variance: u64,
    bytes_variance_kib2: u64,
    samples: u64,
}

/// Whether a true amount lies in the 95 % interval.
fn holds(estimate: u64, truth: u64, variance: f64) -> bool {
    (estimate as f64 - truth as f64).abs() <= 1.96 * variance.sqrt() + 1.0
}

#[test]
fn truth_is_in_the_interval_nineteen_times_of_twenty_and_nothing_is_biased() {
    let mut means = [(0.0, 0.0); SITES.len()];
    // Variances of those means, as the sums themselves estimate them.
    let mut variances = [(0.0, 0.0); SITES.len()];
    let (mut sums, mut held_bytes) = (0_u32, 0_u32);
    let (mut sums_of_one_size, mut held_counts) = (0_u32, 0_u32);
    for seed in 0..SEEDS {
        let mut countdown = Countdown::new(seed, MEAN_BYTES);
        for ((site, mean), variance) in SITES.iter().zip(&mut means).zip(&mut variances) {
            let size_of = |number: usize| site.sizes[number % site.sizes.len()];
            let mut sum = Sum::default();
            for number in (0..site.count).filter(|&number| countdown.takes(size_of(number))) {
                let salt = mixed(seed) ^ number as u64;
                let weight = Weight::of_sample(size_of(number), MEAN_BYTES, salt);
                sum.count += weight.count;
                sum.bytes += weight.bytes;
                sum.count_variance += weight.count_variance;
                sum.bytes_variance_kib2 += weight.bytes_variance_kib2;
                sum.samples += 1;
            }
            let truth_bytes: u64 = (0..site.count).map(size_of).sum();
            mean.0 += sum.count as f64 / site.count as f64 / SEEDS as f64;
            mean.1 += sum.bytes as f64 / truth_bytes as f64 / SEEDS as f64;
            let scale = |truth: u64| (truth as f64 * SEEDS as f64).powi(2);
            variance.0 += sum.count_variance as f64 / scale(site.count as u64);
            variance.1 += sum.bytes_variance_kib2 as f64 * KIB2 / scale(truth_bytes);
            if sum.samples < 10 || site.sizes == [1 << 20] {
                // A normal distribution says little of a few samples; a block that is always
                // recorded is no estimate.
                continue;
            }
            sums += 1;
            held_bytes += u32::from(holds(sum.bytes, truth_bytes, sum.bytes_variance_kib2 as f64 * KIB2));
            // (There may be no sample of small blocks among large ones.)
            if let [_] = site.sizes {
                sums_of_one_size += 1;
                held_counts += u32::from(holds(sum.count, site.count as u64, sum.count_variance as f64));
            }
        }
    }
    for (held, of) in [(held_bytes, sums), (held_counts, sums_of_one_size)] {
        let share = f64::from(held) / f64::from(of);
        assert!((0.93..=0.97).contains(&share), "{held} of {of} intervals hold the truth");
    }
    let of_all = means.iter().map(|(_, bytes)| bytes).sum::<f64>() / SITES.len() as f64;
    assert!((of_all - 1.0).abs() < 0.005, "bytes are {of_all} of the truth on average");
    for ((site, (count, bytes)), variance) in SITES.iter().zip(means).zip(variances) {
        let is_chance = |mean: f64, variance: f64| (mean - 1.0).abs() <= 3.0 * variance.sqrt() + 1e-4;
        assert!(is_chance(count, variance.0), "{:?}: counts are {count} of the truth", site.sizes);
        assert!(is_chance(bytes, variance.1), "{:?}: bytes are {bytes} of the truth", site.sizes);
    }
}

#[test]
fn what_is_always_taken_stands_for_itself() {
    for size_bytes in [1 << 30, u64::MAX] {
        assert_eq!(Weight::of_sample(size_bytes, 4096, 1).count, 1);
    }
    assert_eq!(Weight::of_sample(100, SamplingPeriod::ALL_BYTES, 1), Weight::exact(100));
}

#[test]
fn a_process_has_the_period_of_its_own_and_before_it_that_of_all() {
    let of = |process, from_ns, mean_bytes| SamplingPeriod { process, from_ns, mean_bytes };
    let mut sampling = Sampling::new(vec![
        of(ProcessIndex(1), 50, SamplingPeriod::ALL_BYTES),
        of(SamplingPeriod::EVERY_PROCESS, 0, 512),
        of(ProcessIndex(1), 10, 1024),
    ]);
    let means: Vec<u64> =
        [0, 9, 10, 49, 50].iter().map(|&time_ns| sampling.mean_bytes(ProcessIndex(1), time_ns)).collect();
    assert_eq!(means, [512, 512, 1024, 1024, 0]);
    assert_eq!(sampling.mean_bytes(ProcessIndex(0), 100), 512);
    sampling.add(of(SamplingPeriod::EVERY_PROCESS, 60, SamplingPeriod::NOTHING_BYTES));
    assert_eq!(sampling.mean_bytes(ProcessIndex(7), 60), SamplingPeriod::NOTHING_BYTES);
    assert_eq!(sampling.largest_mean_bytes(), Some(1024));
    assert!(!sampling.is_exact() && Sampling::default().is_exact());
}
