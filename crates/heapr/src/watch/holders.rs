//! Functions that held memory, read from the recording.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use heapr_incident::{Holder, HolderKind, Recording};
use heapr_query::{file_name, plain_symbol, script_place};
use heapr_server::{Files, Limits, Source, answer_json};
use heapr_symbols::ModuleKey;
use serde_json::{Value, json};

use super::recorded::Recorded;
use crate::incidents::{earliest_end_ns, latest};
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::trace_file::open;
use crate::view::CommandLineHost;

/// Number of functions that are read at a moment, and that an incident has.
const FUNCTIONS_READ: usize = 200;
const FUNCTIONS_MAX: usize = 20;
/// Number of moments at which the growth of functions is read.
const MOMENTS: u64 = 8;
/// Longest time before the end over which growth is read, ns.
const GROWTH_NS: u64 = 600_000_000_000;
/// Longest time between an incident and the reading of the recording, ns.
pub(super) const LAG_NS_MAX: u64 = 60_000_000_000;
/// Least time over which a rate is told, ns.
const RATE_NS_MIN: u64 = 1_000_000_000;
/// Largest number of processes whose shares are read one by one.
const PROCESSES_MAX: usize = 8;
const MINUTE_NS: f64 = 60e9;

/// Functions that held memory at a moment, and facts of their recording.
#[derive(Debug, Clone, Default)]
pub(super) struct Functions {
    pub(super) holders: Vec<Holder>,
    pub(super) recording: Recording,
    /// Processes that the recording has.
    pub(super) pids: Vec<u32>,
    /// Bytes of the recorded blocks of single processes, at most; the processes with most of them.
    pub(super) most_bytes: Vec<(u32, u64)>,
}

/// Amount of a function.
#[derive(Debug, Clone, Default)]
struct Amount {
    /// Name with the source location of the largest stack.
    name: String,
    bytes: u64,
    plus_minus: u64,
    count: u64,
}

impl Amount {
    fn add(&mut self, other: Self) {
        if self.name.is_empty() {
            self.name = other.name;
        }
        self.bytes += other.bytes;
        self.count += other.count;
        // Errors of samples are independent of one another.
        self.plus_minus = (self.plus_minus as f64).hypot(other.plus_minus as f64) as u64;
    }
}

/// Amounts by module and symbol.
type Amounts = HashMap<(String, String), Amount>;

/// Process with the amounts of its functions, and their sum.
type Share = (u32, Amounts, Amount);

/// Process whose end is the moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended<'a> {
    pub(super) pid: u32,
    /// Largest time since its start, ns.
    pub(super) age_ns: u64,
    /// Processes that ended with it: each counts with the blocks of its own end.
    pub(super) with: &'a [u32],
}

/// Reads the functions of `pids`. `dead`: process whose end is the moment; without one, or without
/// its end in the recording, it is `at_unix_ns`.
///
/// # Errors
/// The recording cannot be read.
pub(super) fn functions(
    recorded: Recorded<'_>,
    pids: &[u32],
    dead: Option<Ended<'_>>,
    at_unix_ns: u64,
) -> anyhow::Result<Functions> {
    let trace = open(recorded.path)?;
    let files = recorded.module_files(&trace);
    let end_ns = trace.duration_ns();
    let at_ns = at_unix_ns.checked_sub(trace.session().start_unix_ns);
    let last_ns = at_ns.map_or(end_ns, |at_ns| last_moment_ns(at_ns, end_ns));
    let is_known =
        |pid: u32| latest(trace.processes(), pid).is_some_and(|found| is_it(pid, found.end_ns, dead, end_ns));
    let known: Vec<u32> = pids.iter().copied().filter(|&pid| is_known(pid)).collect();
    let own = dead.map(|dead| dead.pid).filter(|pid| known.contains(pid));
    let moment_ns = own
        .and_then(|pid| latest(trace.processes(), pid)?.end_ns)
        // One nanosecond later the process's blocks have ended with it.
        .map_or(last_ns, |end| end.saturating_sub(1).min(end_ns));
    let together = dead.filter(|_| own.is_some()).map_or(&[][..], |dead| dead.with);
    let together = own.into_iter().chain(together.iter().copied().filter(|pid| known.contains(pid)));
    let ended = together.filter_map(|pid| Some((pid, earliest_end_ns(&trace, pid)?.saturating_sub(1))));
    let ended: Vec<(u32, u64)> = ended.collect();
    let start_ns =
        known.iter().filter_map(|pid| latest(trace.processes(), *pid)).map(|process| process.start_ns).min();
    let start_ns = start_ns.unwrap_or(0).max(moment_ns.saturating_sub(GROWTH_NS));
    let recording = Recording {
        from_unix_ns: Some(trace.session().start_unix_ns.saturating_add(start_ns)),
        ..Recording::default()
    };
    let mut found = Functions { recording, pids: known, ..Functions::default() };
    drop(trace);
    if found.pids.is_empty() {
        return Ok(found);
    }
    let reader = Reader { ended, ..Reader::with_files(recorded.path, files) };
    let (amounts, live) = reader.amounts(&found.pids, moment_ns)?;
    found.recording.live_bytes = live.bytes;
    found.recording.live_bytes_plus_minus = live.plus_minus;
    let mut largest: Vec<(&(String, String), &Amount)> =
        amounts.iter().filter(|(_, amount)| amount.bytes > 0).collect();
    largest.sort_by(|one, other| other.1.bytes.cmp(&one.1.bytes).then_with(|| one.0.cmp(other.0)));
    largest.truncate(FUNCTIONS_MAX);
    let courses = reader.courses(&found.pids, start_ns, moment_ns)?;
    let shares = reader.shares(&found.pids, moment_ns)?;
    let most = |all: &Amount| all.bytes.saturating_add(all.plus_minus);
    found.most_bytes = shares.iter().map(|(pid, _, all)| (*pid, most(all))).collect();
    for (key, amount) in largest {
        let mut holder = Holder {
            kind: HolderKind::Function,
            name: amount.name.clone(),
            bytes: amount.bytes,
            bytes_plus_minus: amount.plus_minus,
            block_count: Some(amount.count),
            ..Holder::default()
        };
        let of_key = |(pid, amounts, _): &Share| Some((*pid, amounts.get(key)?.bytes));
        holder.processes = shares.iter().filter_map(of_key).filter(|(_, bytes)| *bytes > 0).collect();
        let course: Vec<(u64, u64)> = courses
            .iter()
            .map(|(time, amounts)| (*time, amounts.get(key).map_or(0, |amount| amount.bytes)))
            .collect();
        if let Some((rate, span_ns)) = rate(&course) {
            (holder.bytes_per_minute, holder.change_ns) = (Some(rate), Some(span_ns));
        }
        found.holders.push(holder);
    }
    Ok(found)
}

/// Moment of an incident in a recording that went on while the incident was made: other processes
/// may have ended since.
pub(super) fn last_moment_ns(at_ns: u64, end_ns: u64) -> u64 {
    // Another difference is that of a clock that was set.
    if end_ns.saturating_sub(at_ns) <= LAG_NS_MAX { at_ns.min(end_ns) } else { end_ns }
}

/// Whether a process of the recording can be the one that is meant. One that had ended before the
/// dead one began had the same number.
fn is_it(pid: u32, end_ns: Option<u64>, dead: Option<Ended<'_>>, now_ns: u64) -> bool {
    let Some(dead) = dead.filter(|dead| dead.pid == pid) else { return true };
    end_ns.is_none_or(|end_ns| end_ns >= now_ns.saturating_sub(dead.age_ns))
}

/// Bytes a minute since the last moment from which on the amount never fell by much, and the time
/// since then.
fn rate(course: &[(u64, u64)]) -> Option<(i64, u64)> {
    let (&(end_ns, end), before) = course.split_last()?;
    let mut lowest_after = end;
    let mut from = None;
    for &(time_ns, bytes) in before.iter().rev() {
        if bytes > lowest_after.saturating_add(end / 20) {
            break;
        }
        lowest_after = lowest_after.min(bytes);
        from = Some((time_ns, bytes));
    }
    let (from_ns, from) = from.unwrap_or(*before.last()?);
    let span_ns = end_ns.saturating_sub(from_ns);
    if span_ns < RATE_NS_MIN {
        return None;
    }
    let change = end as f64 - from as f64;
    Some(((change / span_ns as f64 * MINUTE_NS) as i64, span_ns))
}

/// Answers about one recording.
pub(super) struct Reader {
    pub(super) files: Arc<Files>,
    /// Processes that have ended, each with the last moment at which it has its blocks.
    ended: Vec<(u32, u64)>,
}

impl Reader {
    pub(super) fn of(path: &Path) -> Self {
        Self::with_files(path, HashMap::new())
    }

    /// Answers with names from these files of modules.
    fn with_files(path: &Path, files: HashMap<ModuleKey, PathBuf>) -> Self {
        let host = Arc::new(CommandLineHost {
            names: NameArguments { files, ..NameArguments::default() },
            own: OwnArguments::default(),
            shown: heapr_filters::ShownFrames::default(),
            folder: PathBuf::new(),
            is_static: false,
            graphs: Vec::new(),
        });
        let files = Files::open_sources(&[Source::File(path.to_owned())], host, Limits::default());
        Self { files, ended: Vec::new() }
    }

    /// Amounts of all functions at a moment, and their sum. A process that has ended counts with
    /// the blocks of its end.
    fn amounts(&self, pids: &[u32], moment_ns: u64) -> anyhow::Result<(Amounts, Amount)> {
        let (mut amounts, mut all) = (Amounts::new(), Amount::default());
        let mut others = pids.to_vec();
        let mut parts: Vec<(Vec<u32>, u64)> = Vec::new();
        for &(pid, last_ns) in self.ended.iter().filter(|(_, last_ns)| *last_ns < moment_ns) {
            if let Some(place) = others.iter().position(|other| *other == pid) {
                parts.push((vec![others.remove(place)], last_ns));
            }
        }
        // No process at all would mean each process.
        if !others.is_empty() {
            parts.push((others, moment_ns));
        }
        for (pids, at_ns) in parts {
            let (of_part, sum) = self.amounts_at(&pids, at_ns)?;
            of_part.into_iter().for_each(|(key, amount)| amounts.entry(key).or_default().add(amount));
            all.add(sum);
        }
        Ok((amounts, all))
    }

    fn amounts_at(&self, pids: &[u32], moment_ns: u64) -> anyhow::Result<(Amounts, Amount)> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let request = json!({
            "file": 0, "filter": {"pid": pids, "at": format!("{moment_ns}ns")}, "sort": "so", "limit": FUNCTIONS_READ,
        });
        let answer = answer_json(&self.files, "own-functions", request.to_string().as_bytes())?;
        let answer: Value = serde_json::from_slice(&answer).context("the functions of a recording")?;
        let mut amounts = Amounts::new();
        for row in answer["own_functions"].as_array().into_iter().flatten() {
            let text = |name: &str| row["frame"][name].as_str().unwrap_or_default().to_owned();
            let sum = amounts.entry((text("module"), text("symbol"))).or_default();
            sum.add(Amount { name: name(&row["frame"], row["called"].as_str()), ..amount(row) });
        }
        Ok((amounts, amount(&answer["all"])))
    }

    fn courses(&self, pids: &[u32], start_ns: u64, end_ns: u64) -> anyhow::Result<Vec<(u64, Amounts)>> {
        let span_ns = end_ns.saturating_sub(start_ns);
        let moments = (0..=MOMENTS).map(|place| start_ns + span_ns / MOMENTS * place);
        let at = |moment_ns: u64| Ok((moment_ns, self.amounts(pids, moment_ns.min(end_ns))?.0));
        moments.map(at).collect()
    }

    /// Amounts of single processes.
    fn shares(&self, pids: &[u32], moment_ns: u64) -> anyhow::Result<Vec<Share>> {
        let at = |&pid: &u32| {
            let (amounts, all) = self.amounts(&[pid], moment_ns)?;
            Ok((pid, amounts, all))
        };
        pids.iter().take(PROCESSES_MAX).map(at).collect()
    }
}

fn amount(row: &Value) -> Amount {
    let number = |name: &str| row[name].as_u64().unwrap_or(0);
    Amount {
        name: String::new(),
        bytes: number("outstanding_bytes"),
        plus_minus: number("outstanding_bytes_plus_minus"),
        count: number("outstanding_count"),
    }
}

/// Name of a function in sentences, with its source location. `called`: function that it calls, if
/// it has no symbol.
fn name(frame: &Value, called: Option<&str>) -> String {
    let text = |name: &str| frame[name].as_str().filter(|text| !text.is_empty());
    let (module, symbol) = (text("module"), text("symbol"));
    if frame.is_null() {
        return "code without a stack".to_owned();
    }
    // Symbols of scripts hold their place.
    let script = symbol.and_then(script_place);
    let is_language = module.is_some_and(|module| !module.contains('/') && !module.starts_with('['));
    let name = match (symbol, script, module) {
        (_, Some((name, ..)), _) => name.to_owned(),
        (Some(symbol), None, _) if is_language => symbol.to_owned(),
        (Some(symbol), None, _) => plain_symbol(symbol),
        (None, _, Some(module)) => {
            let code = format!("{}+{:#x}", file_name(module), frame["offset"].as_u64().unwrap_or(0));
            called.map_or(code.clone(), |called| format!("{code} (calls {})", plain_symbol(called)))
        }
        (None, _, None) => "code without a name".to_owned(),
    };
    let file = text("file").or(script.map(|(_, file, _)| file));
    let line = frame["line"].as_u64().or(script.map(|(.., line)| u64::from(line)));
    match (file, line) {
        (Some(file), Some(line)) => format!("{name} ({}:{line})", file_name(file)),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_that_findings_give_them() {
        let frame = json!({"module": "/a/leak", "symbol": "OrderCache::remember(unsigned long)", "file": "/s/leak.cpp", "line": 7});
        assert_eq!(name(&frame, None), "OrderCache::remember (leak.cpp:7)");
        let script = json!({"module": "javascript", "symbol": "handle /srv/app.js:5:49"});
        assert_eq!(name(&script, None), "handle (app.js:5)");
        let stripped = json!({"module": "/bin/x", "symbol": null, "offset": 16});
        assert_eq!(name(&stripped, None), "x+0x10");
        assert_eq!(name(&stripped, Some("y_open(int)")), "x+0x10 (calls y_open)");
        assert_eq!(name(&Value::Null, None), "code without a stack");
    }

    #[test]
    fn a_process_that_ended_before_the_dead_one_began_is_another_one() {
        let dead = Some(Ended { pid: 7, age_ns: 20, with: &[] });
        assert!(is_it(7, Some(85), dead, 100) && is_it(7, None, dead, 100));
        assert!(!is_it(7, Some(75), dead, 100));
        assert!(is_it(8, Some(75), dead, 100) && is_it(7, Some(75), None, 100));
    }

    #[test]
    fn a_moment_is_that_of_the_incident_unless_the_clock_was_set() {
        const S: u64 = 1_000_000_000;
        assert_eq!(last_moment_ns(97 * S, 100 * S), 97 * S);
        assert_eq!(last_moment_ns(103 * S, 100 * S), 100 * S);
        assert_eq!(last_moment_ns(5 * S, 100 * S), 100 * S);
    }

    #[test]
    fn a_rate_is_that_of_the_last_rise() {
        const S: u64 = 1_000_000_000;
        let course = [(0, 50), (10 * S, 100), (20 * S, 10), (30 * S, 20), (90 * S, 80)];
        assert_eq!(rate(&course), Some((60, 70 * S)));
        assert_eq!(rate(&[(0, 10), (60 * S, 10)]), Some((0, 60 * S)));
        assert_eq!(rate(&[(0, 10), (60 * S, 4)]), Some((-6, 60 * S)));
        assert_eq!(rate(&[(0, 10), (S / 2, 20)]), None);
    }
}
