//! Times at which the mappings of a process are read: seldom, as the kernel walks all pages for it.

/// Least bytes, of memory without a file or of files, for a reading.
const LEAST_BYTES: u64 = 3 << 20;
const LEAST_FILE_BYTES: u64 = 16 << 20;
/// Least resident bytes that are not live, and least share of the resident bytes, for a reading
/// that tells where they are.
const NOT_LIVE_BYTES: u64 = 8 << 20;
/// Least time between two readings of that kind in nanoseconds. It grows with the time that the
/// process is recorded, so that their number grows with the logarithm of it.
const PAUSE_NS: u64 = 1_000_000_000;
/// Least time until the next reading of that kind, as a multiple of the time that a reading took.
const PAUSE_PER_READING: u64 = 20;

/// Amounts of a process, for the decision.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookedAt {
    /// Memory without a file, resident or swapped out.
    pub(crate) own_bytes: u64,
    /// Resident pages of files.
    pub(crate) file_bytes: u64,
}

/// Amounts at the last readings, and the time of the next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LookTimes {
    own_bytes: u64,
    file_bytes: u64,
    first_ns: Option<u64>,
    next_ns: u64,
}

fn has_grown(bytes: u64, before: u64, least_bytes: u64) -> bool {
    bytes >= least_bytes && bytes >= before.saturating_add(before / 4)
}

impl LookTimes {
    /// Whether a reading is due: memory has grown by a quarter since the last reading of its kind,
    /// or most of it is not live. `live_bytes`: counts the live recorded bytes, which takes long.
    pub(crate) fn is_due(
        &mut self,
        amounts: LookedAt,
        now_ns: u64,
        live_bytes: impl FnOnce() -> u64,
    ) -> bool {
        let LookedAt { own_bytes, file_bytes } = amounts;
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let mut is_due = false;
        if has_grown(own_bytes, self.own_bytes, LEAST_BYTES) {
            (self.own_bytes, is_due) = (own_bytes, true);
        }
        if has_grown(file_bytes, self.file_bytes, LEAST_FILE_BYTES) {
            (self.file_bytes, is_due) = (file_bytes, true);
        }
        if own_bytes >= NOT_LIVE_BYTES && now_ns >= self.next_ns {
            let not_live = own_bytes.saturating_sub(live_bytes());
            if not_live >= NOT_LIVE_BYTES && not_live >= own_bytes / 2 {
                self.next_ns = now_ns.saturating_add(PAUSE_NS.max(now_ns.saturating_sub(first_ns) / 2));
                is_due = true;
            }
        }
        is_due
    }

    /// Delays the next reading by the time that one took.
    pub(crate) fn took(&mut self, now_ns: u64, took_ns: u64) {
        let next_ns = now_ns.saturating_add(took_ns.saturating_mul(PAUSE_PER_READING));
        self.next_ns = self.next_ns.max(next_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SECOND_NS: u64 = 1_000_000_000;

    fn readings(amounts: impl Fn(u64) -> LookedAt, live_bytes: u64, seconds: u64) -> Vec<u64> {
        let mut times = LookTimes::default();
        let is_due = |&second: &u64| times.is_due(amounts(second), second * SECOND_NS, || live_bytes);
        (0..seconds).filter(is_due).collect()
    }

    #[test]
    fn memory_that_has_grown_by_a_quarter_is_read() {
        let own = |second| LookedAt { own_bytes: (10 + second) * MIB, ..LookedAt::default() };
        assert_eq!(readings(own, 99 * MIB, 10), [0, 3, 7]);
        let files = |second| LookedAt { file_bytes: second * 10 * MIB, ..LookedAt::default() };
        assert_eq!(readings(files, 0, 10), [2, 3, 4, 5, 7, 9]);
        assert!(readings(|_| LookedAt { own_bytes: MIB, ..LookedAt::default() }, 0, 10).is_empty());
    }

    #[test]
    fn memory_that_stays_resident_is_read_ever_less_often() {
        let freed = |_| LookedAt { own_bytes: 100 * MIB, ..LookedAt::default() };
        let found = readings(freed, 2 * MIB, 1000);
        assert_eq!(found[..5], [0, 1, 2, 3, 5]);
        assert!(found.len() < 25, "{found:?}");
        let live = |_| LookedAt { own_bytes: 100 * MIB, ..LookedAt::default() };
        assert_eq!(readings(live, 80 * MIB, 1000), [0]);
    }

    #[test]
    fn a_reading_that_takes_long_delays_the_next_one() {
        let mut times = LookTimes::default();
        let freed = LookedAt { own_bytes: 100 * MIB, ..LookedAt::default() };
        let is_due = |times: &mut LookTimes, second: u64| times.is_due(freed, second * SECOND_NS, || 0);
        assert!(is_due(&mut times, 0));
        times.took(0, SECOND_NS);
        assert!(!is_due(&mut times, 19));
        assert!(is_due(&mut times, 20));
    }
}
