//! Taking the records up to a watermark in order of time, and giving back the buffers that are read to their end.

use heapr_ring::Pool;
use heapr_ring::reader::{self, Content};

use super::{Recorder, SLACK_NS};
use crate::merge::{StreamBuffer, order, record_words};
use crate::plain::Plain;
use crate::translate::{Outcome, Record, translate};

/// A thread that is in the middle of an event for longer is stopped or starved: the others no longer wait for it.
const BUSY_MAX_NS: u64 = 200_000_000;

impl Recorder {
    /// Up to which time all events are known.
    pub(super) fn watermark(&mut self, now_ticks: u64, now_ns: u64) -> u64 {
        let mut watermark = now_ticks.saturating_sub(self.clock.ticks_in(SLACK_NS));
        watermark = watermark.min(self.held.until_ticks());
        for stream in &mut self.streams {
            let busy = stream.buffers.back().filter(|buffer| buffer.is_busy);
            let Some(buffer) = busy.filter(|_| !self.processes[stream.process].has_ended) else {
                stream.busy_since_ns = 0;
                continue;
            };
            let reached = stream.published_ticks(&self.pool).unwrap_or(buffer.claimed_ticks);
            if stream.busy_since_ns == 0 || stream.busy_at_ticks != reached {
                stream.busy_since_ns = now_ns;
                stream.busy_at_ticks = reached;
            }
            if now_ns - stream.busy_since_ns < BUSY_MAX_NS {
                watermark = watermark.min(reached);
            }
        }
        watermark
    }

    /// Takes the records up to `watermark` in order of time, but no more runs once there are `most` events. Tells whether that was all.
    pub(super) fn merge(&mut self, watermark: u64, most: u64) -> bool {
        let until_count = self.sink.event_count.saturating_add(most);
        let mut is_all = true;
        let mut heads = std::mem::take(&mut self.heads);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.streams.len(), 0);
        heads.clear();
        for (number, stream) in self.streams.iter().enumerate() {
            if let Some(head) = stream.head(&self.pool, &mut places[number]) {
                heads.push((order(&head), number));
            }
        }
        // The streams that have something, latest first: the next record is at the end. A stream that was taken from
        // sinks to its new place, mostly next to its old one.
        heads.sort_unstable_by(|one, other| other.cmp(one));
        while let Some((first, number)) = heads.pop() {
            if first.0 > watermark {
                break;
            }
            if self.sink.event_count >= until_count {
                is_all = false;
                break;
            }
            let until = heads.last().map_or((u64::MAX, true), |&(order, _)| order);
            let at = &mut places[number];
            if let Some(next) = self.take_run(number, at, until, watermark, until_count) {
                let mut place = heads.len();
                while place > 0 && heads[place - 1].0 < next {
                    place -= 1;
                }
                heads.insert(place, (next, number));
            }
        }
        self.heads = heads;
        self.places = places;
        is_all
    }

    /// Takes records of one stream while they come before `until` and the watermark. Returns the next one's order.
    fn take_run(
        &mut self,
        number: usize,
        at: &mut usize,
        until: (u64, bool),
        watermark: u64,
        until_count: u64,
    ) -> Option<(u64, bool)> {
        let stream = &mut self.streams[number];
        let process = &mut self.processes[stream.process];
        loop {
            let head = stream.head(&self.pool, at)?;
            let next = order(&head);
            if head.ticks > watermark || next > until || self.sink.event_count >= until_count {
                return Some(next);
            }
            let plain = Plain { until, watermark, thread: stream.thread, clock: &self.clock };
            let taken = plain.take(&head, process, &mut self.sink);
            if taken.words > 0 {
                stream.take(*at, taken.words, taken.last_ticks);
                continue;
            }
            let Some((kind, words)) = record_words(&head) else {
                self.statistics.loss.records_invalid += 1;
                stream.skip_buffer(*at);
                continue;
            };
            let ticks = head.ticks;
            let mut time_ns = self.clock.ns(ticks);
            if time_ns < self.sink.last_ns {
                // Its thread was held up in the middle of writing it.
                if self.sink.last_ns - time_ns > SLACK_NS {
                    self.statistics.loss.events_late += 1;
                }
                time_ns = self.sink.last_ns;
            }
            let record = Record { pool: &self.pool, head, kind, words };
            if translate(&record, time_ns, stream.thread, process, &mut self.sink) == Outcome::Invalid {
                self.statistics.loss.records_invalid += 1;
            }
            stream.take(*at, words, ticks);
        }
    }

    /// Frees buffers that are read to their end. Returns how many.
    pub(super) fn free_used_up(&mut self) -> u32 {
        let mut freed_count = 0;
        for stream in &mut self.streams {
            let has_ended = self.processes[stream.process].has_ended || stream.has_ended;
            while let Some(&front) = stream.buffers.front() {
                let is_last = stream.buffers.len() == 1;
                if front.taken < front.published
                    || !(front.is_closed || (has_ended && is_last && Self::is_drained(&self.pool, &front)))
                {
                    break;
                }
                reader::free_buffer(&self.pool, front.index);
                stream.buffers.pop_front();
                self.statistics.buffers_written += 1;
                freed_count += 1;
            }
        }
        for process in &mut self.processes {
            freed_count += process.free_read_blocks(&self.pool);
        }
        freed_count
    }

    /// Whether nothing was published in a buffer since the scan.
    fn is_drained(pool: &Pool, buffer: &StreamBuffer) -> bool {
        matches!(
            reader::claimed_buffer(pool, buffer.index).map(|now| now.content),
            Some(Content::Events { words, .. }) if words <= buffer.taken
        )
    }
}
