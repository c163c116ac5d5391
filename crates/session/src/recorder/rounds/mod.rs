//! Rounds of the recorder: scan, watermark, merge, free; and the periodic work between them.

pub(crate) mod ending;
pub(crate) mod spare_time;
pub(crate) mod watermark;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use heapr_ring::{reader, writer};

use crate::recorder::{Recorder, snapshots};

/// Time after which an event is either visible to the recorder, or its thread was seen to be busy.
/// Store buffers drain within a microsecond; 50 µs is a wide margin.
const SLACK_NS: u64 = 50_000;
/// Fraction of the buffers (one in `MAY_WAIT`) that may be in use before the recorder hurries. One
/// eighth of the default 64 MiB holds 700,000 events of 12 bytes, which take 40 ms when a program
/// has ended. With half of the buffers, and events of 20 bytes, a program of half a second took a
/// tenth longer in all. With a twelfth redis waited for 0.32 s of 3.9, with an eighth 0.25, with a
/// quarter 0.21; stress took 0.48, 0.46 and 0.52 s.
const MAY_WAIT: usize = 8;
/// Number of events after which the buffers read so far (about twelve) are freed within a round.
/// They are used again while they are still in the caches. Freed only at the end of a round of
/// hundreds of buffers, they forced as many new ones to be faulted in.
const SLICE_EVENTS: u64 = 1 << 16;
/// Slice while the buffers are mostly free: about 20 µs, after each of which the recorder yields
/// the processor. Without the yield the kernel would let others wait for a millisecond or more.
/// Node, whose threads wake each other all the time: 0.94 s without yields, 0.88 s with 500 and
/// with 250 events (27 rounds). With 2,000 events: 0.09 s less once, and no less in two series of
/// 15.
const POLITE_SLICE_EVENTS: u64 = 500;
/// Slice while a snapshot is taken and the recorder's time is shared: half a millisecond's work.
const SHARED_SLICE_EVENTS: u64 = 1 << 14;
/// Interval between two readings of the threads and processes: liveness, names, sizes.
const HOUSEKEEPING_NS: u64 = 100_000_000;
/// Number of threads above which ended threads are also looked for between two housekeepings. Where
/// thousands end at once, their slots are then reused before as many pages of slots are touched.
const STREAMS_MANY: usize = 256;
const STREAM_LOOK_NS: u64 = 40_000;
/// Largest factor by which [`HOUSEKEEPING_NS`] grows in a sampling session, which is left running.
/// The interval is a twentieth of the session's age up to that limit. Ten processes read ten times
/// a second took 1.7 % of a processor, of which next to nothing was samples.
const HOUSEKEEPING_SELDOM: u64 = 10;
const HOUSEKEEPING_PART_OF_AGE: u64 = 20;
/// Housekeeping interval while a thread waits for a buffer: an ended process may hold one.
const HOUSEKEEPING_IN_NEED_NS: u64 = 10_000_000;

/// Result of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Number of events read.
    pub(crate) event_count: u64,
    /// True if everything that the scan found was read, up to the watermark.
    pub(crate) is_whole: bool,
}

impl Recorder {
    /// Notes that the recorder is lent for a turn in spare time, or has come back.
    pub(crate) fn note_lent(&mut self, is_lent: bool) {
        self.is_lent = is_lent;
        self.statistics.spare_turns += u64::from(is_lent);
    }

    /// Whether the buffers are filling up, a thread waits for one, or a snapshot is due.
    pub(crate) fn is_wanted_now(&self) -> bool {
        let control = self.pool.control();
        let claimed_count = control.buffers_claimed.load(Relaxed) as usize;
        claimed_count >= self.pool.limit_count() / MAY_WAIT
            || writer::is_to_be_opened(&self.pool, claimed_count)
            || control.waiter_count.load(Relaxed) != 0
            || self.has_snapshots_to_take()
    }

    /// Runs one round. While a snapshot is taken the round is short, and the snapshot has its turn
    /// after it. Returns the number of events read.
    pub(crate) fn round(&mut self) -> u64 {
        if self.sink.has_snapshot() && !self.is_final {
            let began = Instant::now();
            return self.round_while(SHARED_SLICE_EVENTS, |_| began.elapsed() < snapshots::SLICE).event_count;
        }
        let slice_events = if self.is_wanted_now() { SLICE_EVENTS } else { POLITE_SLICE_EVENTS };
        let let_others_run = |recorder: &Self| {
            if !recorder.is_wanted_now() {
                std::thread::yield_now();
            }
            true
        };
        self.round_while(slice_events, let_others_run).event_count
    }

    /// Runs a round in slices of about `slice_events`. The round ends early if `goes_on` returns
    /// false after a slice; the next round reads the rest.
    pub(crate) fn round_while(&mut self, slice_events: u64, goes_on: impl Fn(&Self) -> bool) -> Round {
        let before = self.sink.event_count;
        let now_ticks = self.clock.now_ticks();
        let now_ns = self.clock.now_ns();
        // Processes that came and went since the last round are found before their liveness is
        // checked.
        self.find_processes();
        self.look_at_lives(now_ns);
        self.note_ends();
        let claimed_count = self.scan();
        reader::note_claimed(&self.pool, claimed_count);
        self.growth.follow(&self.pool, claimed_count as usize, now_ns);
        let is_behind = claimed_count as usize >= self.pool.limit_count() / MAY_WAIT;
        // A thread started while the recorder is lent would inherit the lowest priority for good.
        self.sink.writer.use_second_thread(is_behind && !self.is_lent && self.sink.keeps_events());
        self.statistics.buffers_claimed_max =
            self.statistics.buffers_claimed_max.max(u64::from(claimed_count));
        self.clock.anchor();
        self.count_ends();
        let watermark = if self.is_final { u64::MAX } else { self.watermark(now_ticks, now_ns) };
        // Read after the time: the thread that requests a cut stands still until the cut is set.
        let cut_ticks = self.cut_ticks();
        let is_at_cut = cut_ticks.is_some_and(|cut_ticks| cut_ticks <= watermark);
        let watermark = watermark.min(cut_ticks.unwrap_or(u64::MAX));
        let is_whole = loop {
            let is_all = self.merge(watermark, slice_events);
            let freed_count = self.free_used_up();
            reader::finish_slice(&self.pool, freed_count);
            if is_all || !goes_on(self) {
                break is_all;
            }
        };
        self.watermark_ns = match (is_whole, self.is_final) {
            // More events with the time of the last one may still come.
            (false, _) => self.watermark_ns.max(self.sink.last_ns.saturating_sub(1)),
            (true, true) => now_ns,
            (true, false) => self.clock.ns(watermark).min(now_ns),
        };
        self.is_at_cut = is_at_cut && is_whole;
        self.sink.checkpoint_if_due();
        if self.sink.steering.is_some() {
            self.tell_unmarked();
            self.steer(now_ns);
        }
        let has_waiters = self.pool.control().waiter_count.load(Relaxed) != 0;
        let interval_ns = self.housekeeping_interval_ns(now_ns);
        let early_ns = if has_waiters { interval_ns - HOUSEKEEPING_IN_NEED_NS } else { 0 };
        self.look_at_go(now_ns);
        self.look_at_children_of_go(now_ns);
        if now_ns + early_ns >= self.next_housekeeping_ns {
            self.next_housekeeping_ns = now_ns + interval_ns;
            let freed_count = self.keep_house(now_ns);
            reader::note_ends_looked_for(&self.pool);
            reader::finish_slice(&self.pool, freed_count);
        } else if self.streams.len() > STREAMS_MANY && now_ns >= self.next_thread_look_ns {
            self.next_thread_look_ns = now_ns + self.streams.len() as u64 * STREAM_LOOK_NS;
            self.look_at_threads(now_ns);
        }
        Round { event_count: self.sink.event_count - before, is_whole }
    }

    fn housekeeping_interval_ns(&self, now_ns: u64) -> u64 {
        match self.sink.steering {
            None => HOUSEKEEPING_NS,
            Some(_) => (now_ns / HOUSEKEEPING_PART_OF_AGE)
                .clamp(HOUSEKEEPING_NS, HOUSEKEEPING_NS * HOUSEKEEPING_SELDOM),
        }
    }
}
