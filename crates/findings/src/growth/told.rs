//! Sentences on growth.

use heapr_query::Confidence;
use heapr_table::quantity::{duration, percent, plural};
use heapr_trace::{BlockEstimate, Estimate};

use super::stopped::{Stopped, stopped};
use super::{Growing, KEPT_ALL, Manner};
use crate::estimated::as_many_as;
use crate::finding::{Chosen, Finding, Kind, OwnFrame};
use crate::lost_blocks::LostText;
use crate::python_objects::python_objects;
use crate::recording::Recording;
use crate::slices::slices_of;

/// Time of a process, in nanoseconds, up to which its work may need all that it holds.
const SOON_NS: u64 = 2_000_000_000;
/// Bytes below which the growth of such a process is no sure finding, if it frees them at its end.
const LITTLE_BYTES: u64 = 1 << 20;

impl Growing<'_> {
    /// Finding with the name of the site's own frame.
    pub(crate) fn finding(&self, recording: &Recording<'_>) -> Finding {
        let stack = self.stack.unwrap_or_else(|| recording.growing_stack(self.site, self.from, self.to));
        let (own_frame, name) = recording.name_at(self.site, stack);
        let stacks = || recording.growing_stacks(self.site, self.from, self.to);
        let through = recording.through(stack).or_in_part(|| recording.part_through(&stacks()));
        let mut finding = self.finding_of(recording, own_frame, &through.named(name));
        finding.evidence.extend(through.path);
        finding.evidence.extend(python_objects(recording, self.site));
        match self.lost(recording) {
            Some(LostText::Sentence(text)) => {
                finding.sentence = format!("{}; {text}.", finding.sentence.trim_end_matches('.'));
            }
            Some(LostText::Evidence(text)) => finding.evidence.push(text),
            None => {}
        }
        if let Some(text) = slices_of(recording, self.site) {
            finding.sentence = format!("{}; {text}.", finding.sentence.trim_end_matches('.'));
        }
        finding
    }

    /// Text on the references that a snapshot has to the site's blocks.
    fn lost(&self, recording: &Recording<'_>) -> Option<LostText> {
        let lost = recording.referred(self.site.process)?;
        lost.text(|stack| recording.is_of(self.site, stack), |time_ns| recording.when(time_ns))
    }

    /// Finding with another name.
    pub(crate) fn finding_of(&self, recording: &Recording<'_>, own_frame: OwnFrame, name: &str) -> Finding {
        let (work, last) = (&recording.processes[self.site.process.0 as usize], self.last);
        let last_ns = recording.times_ns[self.to];
        let is_left = self.site.amounts.outstanding_bytes.saturating_mul(2) >= last.bytes;
        let sentence = self.sentence(recording, name, is_left);
        let chosen = Chosen {
            at: Some(format!("{last_ns}ns")),
            require_frames: recording.required(&own_frame),
            ..Chosen::default()
        };
        // A late phase may have loaded all that its work needs. A program that ends early may have
        // needed the little that it frees then.
        let is_little = last.bytes < LITTLE_BYTES && !is_left && self.ends_soon(recording).is_some();
        let most_sure = match (self.stopped(recording).is_some(), self.begins_late) {
            _ if is_little => Confidence::Low,
            (true, true) => Confidence::Low,
            (true, false) => Confidence::Medium,
            (false, _) => Confidence::High,
        };
        let finding = Finding {
            kind: Kind::Growth,
            sentence,
            confidence: self.confidence(work).min(most_sure),
            own_frame: Some(own_frame),
            bytes: last.bytes,
            bytes_plus_minus: last.live().bytes_plus_minus(),
            is_left,
            evidence: self.evidence(recording),
            curve: recording.curve(self.site),
            curve_plus_minus: recording.halves(self.site),
            ..Finding::default()
        };
        finding.choosing(chosen, &recording.file)
    }

    fn sentence(&self, recording: &Recording<'_>, name: &str, is_left: bool) -> String {
        let (last, last_ns) = (self.last, recording.times_ns[self.to]);
        let (held, after) = (recording.said.held(last.live()), recording.after(last_ns));
        let is_soon = self.ends_soon(recording).is_some();
        let pace = self.pace(recording);
        match &self.manner {
            Manner::Whole if is_soon => {
                let at_peak = if self.is_at_its_most() { " at its peak" } else { "" };
                let rest = match (is_left, self.site.amounts.outstanding_bytes) {
                    (true, _) => format!("; {}", self.fate(recording, is_left)),
                    (false, 0) => ", and frees it then".to_owned(),
                    (false, _) => ", and frees most of it then".to_owned(),
                };
                format!("Memory grows: {name} holds {held}{at_peak}, {pace}{rest}.")
            }
            Manner::Whole => match self.stopped(recording) {
                Some(stopped) => format!(
                    "Memory grew: {name} holds {held} {after}, as much as {} before; the program made {} meanwhile; {}.",
                    duration(stopped.quiet_ns),
                    plural(stopped.made, "block"),
                    self.fate(recording, is_left)
                ),
                None => format!(
                    "Memory grows: {name} holds {held} {after}, {pace}; {}.",
                    self.fate(recording, is_left)
                ),
            },
            Manner::Part => format!(
                "Memory grows: of what {name} makes, {} stay {after} that did not {}, {pace}{}.",
                recording.said.held(self.grown()),
                recording.when(recording.times_ns[self.from]),
                if self.falls() { "; other blocks of it come and go" } else { "" },
            ),
            Manner::Doubles(doubling) => format!(
                "Memory grows by doubling: {name} holds {held} {after}, {} times as much as {}, in {} steps, the last \
                 {}{}{pace}.",
                (last.bytes as f64 / self.first.bytes.max(1) as f64).round(),
                recording.when(recording.times_ns[self.from]),
                doubling.steps.len(),
                doubling
                    .steps
                    .last()
                    .map(|&step| recording.when(recording.times_ns[step]))
                    .unwrap_or_default(),
                if is_soon { ", " } else { "; that is " },
            ),
        }
    }

    /// Rate of the growth in words. The rate of a process that ends soon tells nothing of a longer
    /// run: its end is told instead.
    pub(crate) fn pace(&self, recording: &Recording<'_>) -> String {
        match self.ends_soon(recording) {
            Some(end_ns) => format!("until the program ends after {}", duration(end_ns)),
            None => self.more(recording),
        }
    }

    /// End of the process, if it was recorded from its start and ended soon. As all times that are
    /// told, it counts from the begin of the recording.
    fn ends_soon(&self, recording: &Recording<'_>) -> Option<u64> {
        let known = recording.trace.processes().get(self.site.process.0 as usize)?;
        // A session that attached has no command line, and another tool's file no buffers.
        let session = recording.trace.session();
        let is_whole = !session.command_line.is_empty() && session.buffer_bytes > 0;
        let end_ns = known.end_ns?;
        (is_whole && end_ns.saturating_sub(known.start_ns) <= SOON_NS).then_some(end_ns)
    }

    /// Time without growth at the end of the judged span, while the program worked on. Estimates
    /// rise and fall by chance: they do not tell it.
    fn stopped(&self, recording: &Recording<'_>) -> Option<Stopped> {
        let is_told = self.manner == Manner::Whole
            && recording.said.tells_counts()
            && self.last.live().bytes_plus_minus() == 0;
        let work = &recording.processes[self.site.process.0 as usize];
        let moments = &recording.summary.course.moments;
        let made: Vec<u64> = match recording.processes.len() {
            1 => moments.iter().map(|moment| moment.total_count).collect(),
            _ => {
                let before = std::iter::repeat_n(0, work.first);
                before.chain(work.made_own.iter().copied()).collect()
            }
        };
        let by_moment = (&recording.times_ns[..], &made[..], &self.site.held[..]);
        stopped(by_moment, work.first, (self.from, self.to)).filter(|_| is_told)
    }

    /// True if the site holds as much at the end of the judged span as at any moment until then.
    fn is_at_its_most(&self) -> bool {
        let held = self.site.held.get(..=self.to).unwrap_or_default();
        held.iter().all(|held| held.bytes <= self.last.bytes)
    }

    /// True if the whole site holds less at a moment of the judged span than at the one before.
    pub(super) fn falls(&self) -> bool {
        let held = self.site.held.get(self.from..=self.to).unwrap_or_default();
        held.windows(2).any(|pair| pair[1].bytes < pair[0].bytes)
    }

    /// Amounts that came in the judged span.
    fn grown(&self) -> BlockEstimate {
        let grown = self.last.live().without(self.first.live());
        BlockEstimate { bytes: Estimate::new(self.growth_bytes, grown.bytes.variance), ..grown }
    }

    /// Rate of the growth, in words.
    fn more(&self, recording: &Recording<'_>) -> String {
        let half = recording.said.half_of_change(self.first, self.last, self.kept >= KEPT_ALL);
        let (first_ns, last_ns) = (recording.times_ns[self.from], recording.times_ns[self.to]);
        recording.rate(self.growth_bytes, half, first_ns, last_ns)
    }

    /// Part of the blocks that is freed, in words. `is_left`: at least half of the bytes are live
    /// when the recording ends.
    fn fate(&self, recording: &Recording<'_>, is_left: bool) -> String {
        let said = recording.said;
        // Data after the cut, or later events, are unknown.
        let is_cut = !recording.trace.is_complete() || !recording.damage.is_empty();
        match (is_left, self.kept >= KEPT_ALL) {
            // A source that does not record numbers of blocks does not record frees either.
            _ if !said.tells_counts() => "how much of it is freed is not told".to_owned(),
            (true, true) if is_cut => "none of it is freed in the part that was read".to_owned(),
            (true, true) => "none of it is ever freed".to_owned(),
            (true, false) => format!(
                "{:.0} % of the blocks that it makes are {}",
                self.kept * 100.0,
                if is_cut { "not freed in the part that was read" } else { "never freed" }
            ),
            (false, true) => "none of it is freed before the program ends".to_owned(),
            (false, false) => {
                format!(
                    "{:.0} % of the blocks that it makes are not freed before the program ends",
                    self.kept * 100.0
                )
            }
        }
    }

    pub(crate) fn evidence(&self, recording: &Recording<'_>) -> Vec<String> {
        let (work, said) = (&recording.processes[self.site.process.0 as usize], recording.said);
        let (first, last) = (self.first, self.last);
        let (first_ns, last_ns) = (recording.times_ns[self.from], recording.times_ns[self.to]);
        let blocks = |count: u64| said.count(as_many_as(count, last.live().count));
        let span = format!(
            "{} {}, {} {}",
            said.bytes_of(first.live()),
            recording.when(first_ns),
            said.bytes_of(last.live()),
            recording.when(last_ns),
        );
        let rising = format!("it rises in {:.0} % of the steps", self.trend.rising_share * 100.0);
        let mut evidence = vec![match &self.manner {
            Manner::Whole => format!("{span}: {rising} between {} moments", self.count),
            Manner::Part => {
                format!("{span}: the least by stack in each of {} windows of the time; {rising}", self.count)
            }
            Manner::Doubles(_) => {
                format!(
                    "{span}: the last step comes after more work than the one before, as in a container that grows by \
                     a factor; how full it is is not known"
                )
            }
        }];
        let share = percent(last.bytes, work.last_bytes());
        // Blocks that grew by realloc were made earlier.
        let made = last.made.saturating_sub(first.made).max(last.count.saturating_sub(first.count));
        evidence.push(match said.tells_counts() && self.manner == Manner::Whole {
            true => format!(
                "{} blocks were made meanwhile, {} more are live; {share} of all that is live then",
                blocks(made),
                blocks(last.count.saturating_sub(first.count)),
            ),
            false => format!("{share} of all that is live then"),
        });
        if let Some((freed, took_ns)) = work.teardown {
            evidence.push(format!(
                "the program frees {} in its last {}: that is its end, and left out",
                recording.bytes(freed),
                duration(took_ns)
            ));
        }
        if self.ends_soon(recording).is_some() {
            evidence.push(
                "the program ends so soon that its work may need all of it: a longer run tells whether it goes on growing"
                    .to_owned(),
            );
        }
        evidence
    }
}
