//! Records one program, started or attached to, and reads what heapr says of its memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use super::place::Place;
use super::rows::Program;

/// Method of recording a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Run,
    Attach,
}

/// Row of the page.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) way: &'static str,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) anonymous_bytes: u64,
    pub(super) explained_bytes: u64,
    pub(super) unseen_bytes: u64,
    /// Bytes of the largest stacks: those with three named frames, and all.
    pub(super) named: (u64, u64),
    pub(super) message: String,
    pub(super) is_harmed: bool,
}

/// Bytes outside of blocks that need no message.
const UNSEEN_BYTES: u64 = 3 << 20;

impl Row {
    /// Whether much memory is unexplained, and there is no message.
    pub(super) fn is_silent(&self) -> bool {
        self.message.is_empty() && self.unseen_bytes > UNSEEN_BYTES.max(self.anonymous_bytes / 10)
    }
}

/// Measures a program. `None`: it is not installed, or not run that way.
pub(super) fn row(program: &Program, way: Way, place: &Place, heapr: &Path) -> anyhow::Result<Option<Row>> {
    if !place.has(program)? {
        return Ok(None);
    }
    let trace = place.folder.join("trace.heapr");
    let _ = std::fs::remove_file(&trace);
    let (text, is_harmed) = match (way, &program.run, &program.serve) {
        (Way::Run, Some(line), _) => match run(line, place, heapr, &trace)? {
            Some(told) => told,
            None => return Ok(None),
        },
        (Way::Attach, _, Some(line)) => attach(line, program.load.as_deref(), place, heapr, &trace)?,
        _ => return Ok(None),
    };
    let mut row = Row {
        name: program.name.clone(),
        kind: program.kind.clone(),
        way: if way == Way::Run { "run" } else { "attach" },
        is_harmed,
        ..Row::default()
    };
    fill(&mut row, heapr, &trace, &text);
    Ok(Some(row))
}

/// Runs the program without heapr and with it. Returns heapr's messages, and whether the program
/// ended differently. `None`: it does not run here.
fn run(line: &str, place: &Place, heapr: &Path, trace: &Path) -> anyhow::Result<Option<(String, bool)>> {
    // A program that hangs must not stop the rest.
    let limit = |folder: &Path| {
        let mut command = place.command("timeout", folder);
        command.arg("100");
        command
    };
    let folder = place.fresh()?;
    let plain = limit(&folder).args(["sh", "-c", line]).output()?;
    if !plain.status.success() {
        return Ok(None);
    }
    let folder = place.fresh()?;
    let mut recorded = limit(&folder);
    recorded.arg(heapr).args(["run", "-f", "-o"]).arg(trace).args(["--", "sh", "-c", line]);
    let recorded = recorded.output().context("heapr cannot be started")?;
    let text = String::from_utf8_lossy(&recorded.stderr).into_owned();
    let has_loader_error = text.contains("ERROR: ld.so");
    Ok(Some((text, recorded.status.code() != plain.status.code() || has_loader_error)))
}

/// Program that is killed with its children when this is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// Attaches while the program works. Returns heapr's messages, and whether the program did not
/// survive.
fn attach(
    line: &str,
    load: Option<&str>,
    place: &Place,
    heapr: &Path,
    trace: &Path,
) -> anyhow::Result<(String, bool)> {
    use std::os::unix::process::CommandExt as _;
    let folder = place.fresh()?;
    let mut command = place.command("sh", &folder);
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut served = Served(command.process_group(0).spawn()?);
    let work = |line: Option<&str>| match line {
        Some(line) => place.shell(line, &folder).map(|_| ()),
        None => {
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        }
    };
    let begin = Instant::now();
    // Wait until it works.
    while begin.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = served.0.id().to_string();
    let session = format!("matrix-{}", std::process::id());
    let started = Command::new("timeout")
        .args(["60".as_ref(), heapr.as_os_str(), "start".as_ref(), session.as_ref()])
        .args(["--pid", &pid, "-f", "-o"])
        .arg(trace)
        .output()?;
    let mut text = String::from_utf8_lossy(&started.stderr).into_owned();
    if started.status.success() {
        work(load)?;
        let stopped = Command::new("timeout")
            .args(["60".as_ref(), heapr.as_os_str(), "stop".as_ref()])
            .arg(&session)
            .output()?;
        text.push_str(&String::from_utf8_lossy(&stopped.stderr));
    }
    let is_harmed = served.0.try_wait()?.is_some();
    Ok((text, is_harmed))
}

/// Fills a row from the trace.
fn fill(row: &mut Row, heapr: &Path, trace: &Path, text: &str) {
    let info = json(heapr, &["info", "--format", "json"], trace);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let accounts = info["own_memory"].as_array().into_iter().flatten();
    if let Some(largest) = accounts.max_by_key(|account| number(&account["anonymous_bytes"])) {
        row.anonymous_bytes = number(&largest["anonymous_bytes"]);
        row.explained_bytes = number(&largest["explained_bytes"]);
        row.unseen_bytes = number(&largest["unseen_bytes"]);
    }
    let report = json(heapr, &["report", "--stacks", "--top", "2000", "--format", "json"], trace);
    row.events = number(&report["event_count"]);
    row.lost = number(&report["totals"]["lost_events"]);
    for group in report["groups"].as_array().into_iter().flatten() {
        let bytes = number(&group["peak_bytes"]);
        let frames = group["frames"].as_array().into_iter().flatten();
        let named =
            frames.filter(|frame| frame["symbol"].is_string() && !is_beside(&frame["module"])).count();
        row.named.1 += bytes;
        row.named.0 += if named >= 3 { bytes } else { 0 };
    }
    // The message on the largest process; else that on an untraced program.
    let warnings = report["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let warnings: Vec<&str> = warnings.collect();
    let is_memory = |warning: &&&str| warning.contains("no recorded block");
    let is_untraced = |warning: &&&str| warning.contains("runs untraced");
    let told = warnings.iter().find(is_memory).or_else(|| warnings.iter().find(is_untraced));
    let told = told.or_else(|| warnings.first()).map(|warning| (*warning).to_owned());
    let untold = || {
        let line = text.lines().find(|line| line.contains("untraced") || line.starts_with("heapr: error"));
        line.map(|line| line.trim_start_matches("heapr: ").to_owned())
    };
    row.message = told.or_else(untold).unwrap_or_default();
}

/// Whether a frame's module is the C or C++ library, or an allocator, whose frames do not name the
/// program's work.
fn is_beside(module: &Value) -> bool {
    let path = module.as_str().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    ["libc.so", "ld-linux", "libstdc++", "libjemalloc", "libtcmalloc", "libmimalloc"]
        .iter()
        .any(|start| file.starts_with(start))
}

fn json(heapr: &Path, words: &[&str], trace: &Path) -> Value {
    let output = Command::new(heapr).args(words).arg(trace).output();
    output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or(Value::Null)
}
