//! The resident set of a recording: the kernel's counters once a second, and snapshots.

use heapr_table::quantity::count;
use heapr_trace::{BlockEstimate, Course, ProcessIndex, ResidentSample, Trace};

use crate::class::Class;
use crate::saved_moments::{LIVE_BLOCKS, SavedMoment, SavedMoments, UNKNOWN};

impl SavedMoments {
    /// Moments of the process that had the most resident bytes. `None`: the recording has no
    /// counters.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn of_recording(trace: &Trace) -> Result<Option<Self>, heapr_trace::Error> {
        of_recording(trace)
    }
}

fn of_recording(trace: &Trace) -> Result<Option<SavedMoments>, heapr_trace::Error> {
    let samples = trace.resident_samples();
    let Some(largest) = samples.iter().max_by_key(|sample| sample.rss_bytes()) else { return Ok(None) };
    let process = largest.process;
    let samples: Vec<&ResidentSample> = samples.iter().filter(|sample| sample.process == process).collect();
    let live = Live::of(trace, trace.course()?.as_ref(), process);
    // As it was when the process held most: at other moments it may have been less.
    let accounts = trace.memory_accounts().iter().filter(|account| account.process == process);
    let agent_bytes = accounts.map(|account| account.agent_bytes).max().unwrap_or(0);
    let of_sample = |sample: &&ResidentSample| {
        let live = live.at(sample.time_ns).unwrap_or_default();
        SavedMoment {
            time_ns: Some(sample.time_ns),
            lines: lines(sample, live.bytes.value, agent_bytes),
            live_plus_minus: live.bytes_plus_minus(),
            rss_bytes: sample.rss_bytes(),
            ..SavedMoment::default()
        }
    };
    let mut moments: Vec<SavedMoment> = samples.iter().map(of_sample).collect();
    for snapshot in trace.snapshots() {
        let Some(place) = snapshot.processes.iter().position(|own| own.process == process) else { continue };
        let own = &snapshot.processes[place];
        let near = samples.iter().min_by_key(|sample| sample.time_ns.abs_diff(snapshot.time_ns));
        let (Some(rss_bytes), Some(near)) = (own.rss_bytes, near) else { continue };
        // The snapshot has only the sum; files and shared memory hardly change.
        let file_bytes = near.file_bytes.min(rss_bytes);
        let shared_memory_bytes = near.shared_memory_bytes.min(rss_bytes - file_bytes);
        let anonymous_bytes = rss_bytes - file_bytes - shared_memory_bytes;
        let sample = ResidentSample { anonymous_bytes, file_bytes, shared_memory_bytes, ..**near };
        moments.push(SavedMoment {
            time_ns: Some(snapshot.time_ns),
            name: format!("snapshot {} {}", snapshot.number, snapshot.name).trim().to_owned(),
            rss_bytes,
            lines: lines(&sample, own.block_bytes, agent_bytes),
            live_plus_minus: trace.snapshot_estimates(snapshot)[place].bytes_plus_minus(),
            ..SavedMoment::default()
        });
    }
    moments.sort_by_key(|moment| moment.time_ns);
    let recorded = trace.processes().get(process.0 as usize);
    let of = recorded.map_or_else(String::new, |process| format!("process {}", process.pid));
    let mut limits = vec![
        "what makes up the unknown, as a recording has the kernel's counters alone: freed blocks, stacks, written data, mappings that are not malloc's"
            .to_owned(),
    ];
    let others = trace.processes().len().saturating_sub(1) as u64;
    if others > 0 {
        limits.push(format!("{} more of the recording's processes, which had less resident", count(others)));
    }
    Ok(Some(SavedMoments { of, moments, limits }))
}

/// Lines of a sample. Anonymous memory counts as live first: blocks that were never written have no
/// pages. Next it counts as the agent's.
fn lines(sample: &ResidentSample, live_bytes: u64, agent_bytes: u64) -> Vec<(String, u64)> {
    let live_bytes = live_bytes.min(sample.anonymous_bytes);
    let agent_bytes = agent_bytes.min(sample.anonymous_bytes - live_bytes);
    [
        (LIVE_BLOCKS, live_bytes),
        (UNKNOWN, sample.anonymous_bytes - live_bytes - agent_bytes),
        (Class::Recorder.key(), agent_bytes),
        ("files", sample.file_bytes),
        ("shared_memory", sample.shared_memory_bytes),
    ]
    .map(|(class, bytes)| (class.to_owned(), bytes))
    .to_vec()
}

/// Live blocks of a process, by time.
struct Live(Vec<(u64, BlockEstimate)>);

impl Live {
    fn of(trace: &Trace, course: Option<&Course>, process: ProcessIndex) -> Self {
        let is_alone = trace.processes().len() == 1;
        let moments = course.map_or(&[][..], |course| &course.moments);
        let of_process = |moment: &heapr_trace::CourseMoment| {
            if is_alone {
                return moment.live();
            }
            let is_own = |row: &&heapr_trace::CourseRow| {
                trace.stacks().node(row.stack).is_some_and(|node| node.process == process)
            };
            let rests = moment.rests.iter().filter(|rest| rest.process == process).map(|rest| &rest.row);
            let mut sum = BlockEstimate::default();
            moment.rows.iter().filter(is_own).chain(rests).for_each(|row| sum += row.live());
            sum
        };
        Self(moments.iter().map(|moment| (moment.time_ns, of_process(moment))).collect())
    }

    /// Amounts at the nearest moment of the course.
    fn at(&self, time_ns: u64) -> Option<BlockEstimate> {
        let nearest = self.0.iter().min_by_key(|(own_ns, _)| own_ns.abs_diff(time_ns));
        nearest.map(|(_, live)| *live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_heapr_has_in_a_process_is_not_unknown() {
        let sample = ResidentSample { anonymous_bytes: 1000, file_bytes: 30, ..ResidentSample::default() };
        let of = |live_bytes, agent_bytes, class: &str| {
            let lines = lines(&sample, live_bytes, agent_bytes);
            assert_eq!(lines.iter().map(|(_, bytes)| bytes).sum::<u64>(), sample.rss_bytes());
            lines.iter().find(|(own, _)| own == class).map(|(_, bytes)| *bytes)
        };
        for (live_bytes, agent_bytes, told) in
            [(100, 300, [600, 300]), (900, 300, [0, 100]), (5000, 300, [0, 0]), (100, 0, [900, 0])]
        {
            assert_eq!(of(live_bytes, agent_bytes, UNKNOWN), Some(told[0]));
            assert_eq!(of(live_bytes, agent_bytes, "recorder"), Some(told[1]));
        }
    }
}
