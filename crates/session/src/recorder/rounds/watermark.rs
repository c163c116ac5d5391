//! Processes the records up to a watermark in order of time, and frees buffers that are read to
//! their end.

use heapr_ring::Pool;
use heapr_ring::reader::{self, Content};

use super::SLACK_NS;
use crate::recorder::Recorder;
use crate::recorder::intake::merge::{StreamBuffer, last_order_at, record_words};
use crate::recorder::translate::common_records::{Source, take_one, take_two};
use crate::recorder::translate::{Outcome, Record, translate};

/// Time for which a thread may be in the middle of an event. A longer one is stopped or starved,
/// and the others do not wait for it.
const BUSY_MAX_NS: u64 = 200_000_000;

impl Recorder {
    /// Returns the time up to which all events are published.
    pub(crate) fn watermark(&mut self, now_ticks: u64, now_ns: u64) -> u64 {
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

    /// Processes the records up to `watermark` in order of time, but stops after about `most`
    /// events. Returns whether no record is left.
    pub(crate) fn merge(&mut self, watermark: u64, most: u64) -> bool {
        let until_count = self.sink.event_count.saturating_add(most);
        let until = last_order_at(watermark);
        let mut is_all = true;
        let mut heads = std::mem::take(&mut self.heads);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.streams.len(), 0);
        heads.clear();
        for (number, stream) in self.streams.iter().enumerate() {
            if let Some(head) = stream.head(&self.pool, &mut places[number]) {
                heads.push((head.order(), number));
            }
        }
        // Streams with records, latest first: the next record is at the end. A stream that was read
        // from sinks to its new position, mostly next to its old one.
        heads.sort_unstable_by(|one, other| other.cmp(one));
        while let Some(&(first, number)) = heads.last() {
            if first > until {
                break;
            }
            if self.sink.event_count >= until_count {
                is_all = false;
                break;
            }
            if self.take_pair(&mut heads, &mut places, until) {
                continue;
            }
            heads.pop();
            let until = heads.last().map_or(until, |&(order, _)| order.min(until));
            if let Some(next) = self.take_run(number, &mut places[number], until, until_count) {
                put_back(&mut heads, next, number);
            }
        }
        self.heads = heads;
        self.places = places;
        is_all
    }

    /// Processes common records of the two streams whose next ones come first, as long as they lie
    /// in the current buffers. Returns `false` if there are no two such streams, or no record was
    /// processed.
    fn take_pair(&mut self, heads: &mut Vec<(u64, usize)>, places: &mut [usize], until: u64) -> bool {
        let &[.., (second, other), (_, number)] = heads.as_slice() else { return false };
        // The second stream has nothing before the watermark.
        if second > until {
            return false;
        }
        let until = heads.len().checked_sub(3).map_or(until, |third| heads[third].0.min(until));
        let numbers = [number, other];
        let source = |number: usize, at: &mut usize| {
            let stream = &self.streams[number];
            let head = stream.head(&self.pool, at)?;
            Some(Source::new(&head, &self.processes[stream.process], stream.thread))
        };
        let (Some(one), Some(two)) = (source(number, &mut places[number]), source(other, &mut places[other]))
        else {
            return false;
        };
        let mut sources = [one, two];
        let last = take_two(&mut sources, until, &self.clock, &mut self.sink);
        let taken = sources.map(|source| (source.taken, source.last_ticks));
        // Nothing is read of the second stream before the first.
        if taken[0].0 == 0 {
            return false;
        }
        heads.pop();
        if taken[1].0 > 0 {
            heads.pop();
        }
        // The stream that was read last goes first again.
        for place in [last ^ 1, last] {
            let (number, (words, last_ticks)) = (numbers[place], taken[place]);
            if words > 0 {
                let (stream, at) = (&mut self.streams[number], &mut places[number]);
                stream.take(*at, words, last_ticks);
                if let Some(head) = stream.head(&self.pool, at) {
                    put_back(heads, head.order(), number);
                }
            }
        }
        true
    }

    /// Processes records of one stream up to `until`. Returns the next record's order.
    fn take_run(&mut self, number: usize, at: &mut usize, until: u64, until_count: u64) -> Option<u64> {
        let stream = &mut self.streams[number];
        let process = &mut self.processes[stream.process];
        loop {
            let head = stream.head(&self.pool, at)?;
            let next = head.order();
            if next > until || self.sink.event_count >= until_count {
                return Some(next);
            }
            let mut source = Source::new(&head, process, stream.thread);
            take_one(&mut source, until, &self.clock, &mut self.sink);
            let (taken, last_ticks) = (source.taken, source.last_ticks);
            if taken > 0 {
                stream.take(*at, taken, last_ticks);
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
                // The record's thread was interrupted in the middle of writing it.
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

    /// Frees buffers that are read to their end. Returns their number.
    pub(crate) fn free_used_up(&mut self) -> u32 {
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
                if front.is_closed {
                    reader::free_buffer(&self.pool, front.index);
                } else {
                    reader::free_held_buffer(&self.pool, front.index);
                }
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

    /// Whether the buffer has no record that was published since the scan.
    fn is_drained(pool: &Pool, buffer: &StreamBuffer) -> bool {
        matches!(
            reader::claimed_buffer(pool, buffer.index).map(|now| now.content),
            Some(Content::Events { words, .. }) if words <= buffer.taken
        )
    }
}

/// Inserts a stream at its next record's position; among equal ones it goes first.
#[inline(always)]
fn put_back(heads: &mut Vec<(u64, usize)>, next: u64, number: usize) {
    let mut place = heads.len();
    while place > 0 && heads[place - 1].0 < next {
        place -= 1;
    }
    heads.insert(place, (next, number));
}
