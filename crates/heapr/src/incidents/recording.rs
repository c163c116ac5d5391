//! The recording that an incident keeps, and the place that the page opens on.

use std::path::{Path, PathBuf};

use heapr_incident::{Incident, Store};
use heapr_query::process_ends;
use heapr_server::IncidentTold;
use heapr_trace::{Process, Trace};

/// Time before an incident that the page shows first, ns.
const SHOWN_NS: u64 = 600_000_000_000;

/// Returns the recording beside an incident's file, and tells its first sentence. `None`: the path
/// is no file of an incident.
///
/// # Errors
/// The incident cannot be read, or has no recording.
pub(crate) fn recording_of_incident(path: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some(number) = number_of(path, ".json") else { return Ok(None) };
    let store = Store::open(folder_of(path))?;
    let incident = store.read(number)?;
    // The name in the file is not trusted.
    let recording = store.recording_path(number);
    anyhow::ensure!(
        recording.exists(),
        "incident {number} has no recording: `heapr incidents {number}` has its report"
    );
    if let Some(sentence) = incident.sentences.first() {
        tell!("heapr: {sentence}");
    }
    Ok(Some(recording))
}

/// Number, time and sentences of the incident beside a recording; `None` without one that can be
/// read.
pub(crate) fn incident_of_recording(path: &Path) -> Option<IncidentTold> {
    let incident = incident_beside(path)?;
    let Incident { number, time_unix_ns, sentences, .. } = incident;
    Some(IncidentTold { number, time_unix_ns, sentences })
}

/// Address in the page, the text after `#`, of the last minutes before the incident beside a
/// recording. It chooses the processes whose memory counts. `None`: all of the recording is shown.
pub(crate) fn last_minutes(path: &Path) -> Option<String> {
    let incident = incident_beside(path)?;
    let trace = Trace::open(path).ok()?;
    let own = incident.process.pid;
    let group = incident.group.iter().filter(|_| incident.cause.kind.is_of_group());
    let mut pids = vec![own];
    pids.extend(group.flat_map(|group| &group.processes).map(|process| process.pid));
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| latest(trace.processes(), *pid).is_some());
    let at_ns = incident.time_unix_ns.saturating_sub(trace.session().start_unix_ns);
    // One nanosecond later the process's blocks have ended with it.
    let ended_ns =
        incident.ending.and_then(|_| earliest_end_ns(&trace, own)).map(|end| end.saturating_sub(1));
    let to_ns = ended_ns.unwrap_or(at_ns).min(trace.duration_ns());
    // An end or a clock before the recording leaves no minutes to show.
    if to_ns == 0 {
        return None;
    }
    let mut address = format!("range={}ns&range={to_ns}ns", to_ns.saturating_sub(SHOWN_NS));
    pids.iter().for_each(|pid| address += &format!("&pid={pid}"));
    Some(address)
}

fn incident_beside(recording: &Path) -> Option<Incident> {
    let number = number_of(recording, ".heapr")?;
    Store::open(folder_of(recording)).ok()?.read(number).ok()
}

/// Number of an incident in the name of one of its files.
fn number_of(path: &Path, ending: &str) -> Option<u32> {
    let name = path.file_name().and_then(|name| name.to_str())?;
    name.strip_prefix("incident-")?.strip_suffix(ending)?.parse().ok()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Latest image of a process: an earlier one has ended with an exec, or had the same number.
pub(crate) fn latest(processes: &[Process], pid: u32) -> Option<&Process> {
    processes.iter().filter(|process| process.pid == pid).max_by_key(|process| process.start_ns)
}

/// End of a process in answers on the trace. In an unfinished file with several processes it lies
/// before the end that the file tells: right after the process's last event.
pub(crate) fn earliest_end_ns(trace: &Trace, pid: u32) -> Option<u64> {
    let of_pid = trace.processes().iter().enumerate().filter(|(_, process)| process.pid == pid);
    let (index, process) = of_pid.max_by_key(|(_, process)| process.start_ns)?;
    let told_ns = process.end_ns?;
    let mut ends = process_ends(trace);
    while let Some((end_ns, found)) = ends.take_before(u64::MAX) {
        if found.0 as usize == index {
            return Some(end_ns.min(told_ns));
        }
    }
    Some(told_ns)
}
