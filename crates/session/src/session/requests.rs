//! Requests to a running session: snapshots, markers, stacks, the sampling rate; and its progress.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::session::Session;
use crate::session::opening::{STACK_FLAGS, stack_flags};
use crate::snapshots::native_snapshot::{SnapshotReport, SnapshotRequest, SnapshotTicket};
use crate::snapshots::native_snapshot_rules::SnapshotRule;
use crate::{Error, Progress, SampleRate, StackEvents};

impl Session {
    /// Requests a snapshot of live heaps. [`Session::step`] takes it in slices, without stopping
    /// any process.
    ///
    /// # Errors
    /// A process is not recorded by this session, or too many snapshots wait.
    pub fn request_snapshot(&mut self, request: SnapshotRequest) -> Result<SnapshotTicket, Error> {
        self.check_is_recording()?;
        self.recorder.request_snapshot(request)
    }

    fn check_is_recording(&self) -> Result<(), Error> {
        if self.is_full { Err(Error::RecordingEnded) } else { Ok(()) }
    }

    /// Takes a snapshot at once, and continues recording meanwhile.
    ///
    /// # Errors
    /// See [`Session::request_snapshot`].
    pub fn snapshot(&mut self, request: SnapshotRequest) -> Result<SnapshotReport, Error> {
        let ticket = self.request_snapshot(request)?;
        loop {
            self.recorder.round();
            self.recorder.advance_snapshots();
            if let Some(report) = self.recorder.take_report_of(ticket) {
                return Ok(report);
            }
        }
    }

    /// Takes the oldest report of a snapshot, by request or rule; each is returned once.
    pub fn take_snapshot_report(&mut self) -> Option<SnapshotReport> {
        self.recorder.take_snapshot_report()
    }

    /// Takes the report of a requested snapshot, once it is finished.
    pub(crate) fn take_report_of(&mut self, ticket: SnapshotTicket) -> Option<SnapshotReport> {
        self.recorder.take_report_of(ticket)
    }

    /// Adds a rule for snapshots.
    pub fn add_snapshot_rule(&mut self, rule: SnapshotRule) {
        self.recorder.add_snapshot_rule(rule);
    }

    /// Retains the rules for which `is_kept` returns true.
    pub fn retain_snapshot_rules(&mut self, is_kept: impl FnMut(&SnapshotRule) -> bool) {
        self.recorder.retain_snapshot_rules(is_kept);
    }

    /// Writes a marker with a text into the trace, at the present time.
    pub fn mark(&mut self, text: &str) {
        let time_ns = self.recorder.clock().now_ns();
        let outcome =
            self.recorder.sink.writer.marker(&heapr_trace::Marker { time_ns, text: text.to_owned() });
        self.recorder.sink.keep(outcome);
        self.marker_count += 1;
    }

    /// Sets which events carry stacks.
    pub fn set_stacks(&mut self, stacks: StackEvents) {
        self.properties.stacks = stacks;
        let flags = &self.recorder.pool().control().flags;
        // No other thread writes the flags.
        flags.store(flags.load(Relaxed) & !STACK_FLAGS | stack_flags(stacks), Relaxed);
    }

    /// Sets the sampling rate.
    ///
    /// # Errors
    /// The session was started to record all allocations.
    pub fn set_sample_rate(&mut self, rate: SampleRate) -> Result<(), Error> {
        rate.check()?;
        if !self.recorder.set_sample_rate(rate) {
            return Err(Error::NotSampled);
        }
        // The file shows a time without recording only by this marker.
        if (rate == SampleRate::Off) != (self.properties.sample == Some(SampleRate::Off)) {
            self.mark(&format!("sampling: {}", rate.to_text()));
        }
        self.properties.sample = Some(rate);
        self.former_rate = None;
        Ok(())
    }

    /// Sets the sampling rate for a while. Then the rate before applies again, also if the client
    /// has gone.
    ///
    /// # Errors
    /// The session was started to record all allocations.
    pub fn set_sample_rate_for(&mut self, rate: SampleRate, time: Duration) -> Result<(), Error> {
        let before = self.former_rate.map(|(_, before)| before).or(self.properties.sample);
        self.set_sample_rate(rate)?;
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = self.recorder.clock().now_ns().saturating_add(time_ns);
        self.former_rate = before.map(|before| (until_ns, before));
        Ok(())
    }

    /// Goes back to the rate before, if that is due.
    pub(crate) fn end_rate_if_due(&mut self, now_ns: u64) {
        if let Some((_, before)) = self.former_rate.filter(|(until_ns, _)| *until_ns <= now_ns) {
            // The rate before was valid in this session.
            let _ = self.set_sample_rate(before);
        }
    }

    /// Checks at once which of the processes still live.
    pub fn look_for_ends(&mut self) {
        self.recorder.look_for_ends();
    }

    /// Whether a process was forked that has not registered yet (or could not).
    #[must_use]
    pub fn has_forks_on_their_way(&self) -> bool {
        let control = self.recorder.pool().control();
        control.forks_begun.load(Relaxed) > control.forks_arrived.load(Relaxed)
    }

    /// Number of live traced processes, as of the last check.
    #[must_use]
    pub fn live_process_count(&self) -> usize {
        self.recorder.live_process_count()
    }

    /// Progress of the recording.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.recorder.progress()
    }

    /// Number of process images seen so far.
    #[must_use]
    pub fn process_count(&self) -> usize {
        self.recorder.process_count()
    }

    /// Notes that a child was waited for, with its raw wait status.
    pub fn process_exited(&mut self, pid: u32, wait_status: i32) {
        self.recorder.process_exited(pid, wait_status);
    }
}
