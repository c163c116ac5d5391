//! Programs whose blocks have sizes that stand for the allocating function and line. At their end
//! they write the meaning of each size into a file of JSON, a line a size.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use heapr_testkit::{Outcome, not_run};
use serde_json::Value;

use crate::recording::{Recording, Settings, record, with_sessions};
use crate::victim_build::sources;

/// Program of this kind in one language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling {
    /// Environment variable with the interpreters to test, separated by colons, and the default
    /// ones.
    pub(crate) variable: &'static str,
    pub(crate) usual: &'static str,
    /// Path among the victims.
    pub(crate) program: &'static str,
    /// Module of the language's frames.
    pub(crate) module: &'static str,
    /// Frame of the stacks that are checked.
    pub(crate) required: &'static str,
    /// Environment of the program.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// Every Nth cached stack of the language is compared with a full reading.
    pub(crate) verify_every: u32,
    /// Least number of sizes.
    pub(crate) sizes: usize,
    /// Whether a frame of the language belongs to its own library.
    pub(crate) is_library: fn(&Value) -> bool,
}

/// Blocks of one size.
#[derive(Debug, Default)]
struct Blocks {
    place: String,
    told: u64,
    right: u64,
    others: Vec<(String, u64)>,
}

fn place(function: &Value, file: &Value, line: &Value) -> String {
    format!("{}\n{}:{line}", function.as_str().unwrap_or("?"), file.as_str().unwrap_or("?"))
}

/// Reads the sizes that the program and its child wrote.
fn told(file: &Path) -> HashMap<u64, Blocks> {
    let mut told: HashMap<u64, Blocks> = HashMap::new();
    for suffix in ["", ".child"] {
        let Ok(lines) = std::fs::read_to_string(format!("{}{suffix}", file.display())) else { continue };
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let blocks = told.entry(line["bytes"].as_u64().unwrap()).or_default();
            blocks.place = place(&line["function"], &line["file"], &line["line"]);
            blocks.told += line["blocks"].as_u64().unwrap();
        }
    }
    told
}

/// Whether the trace says that it has no frames of the language.
fn is_unknown(recording: &Recording) -> bool {
    recording.text(&["info"]).contains("stacks have no frames of")
}

impl Telling {
    /// Returns the interpreters to test.
    pub(crate) fn interpreters(&self) -> Vec<PathBuf> {
        let named = std::env::var(self.variable).unwrap_or_else(|_| self.usual.to_owned());
        let (there, missing): (Vec<PathBuf>, Vec<PathBuf>) =
            named.split(':').map(PathBuf::from).partition(|path| path.exists());
        for path in missing {
            not_run(format!("{} is not installed", path.display()));
        }
        there
    }

    fn victim(&self) -> String {
        sources().join(self.program).to_str().unwrap().to_owned()
    }

    /// Checks that each block has the innermost frame that its size stands for.
    fn check(&self, recording: &Recording, file: &Path, label: &str) {
        let mut told = told(file);
        let report =
            recording.json(&["report", "--stacks", "--top", "100000000", "--require-frames", self.required]);
        for group in report["groups"].as_array().unwrap() {
            let (bytes, count) =
                (group["total_bytes"].as_u64().unwrap(), group["total_count"].as_u64().unwrap());
            let Some(blocks) = told.get_mut(&(bytes / count.max(1))).filter(|_| bytes % count.max(1) == 0)
            else {
                continue;
            };
            let frames = group["frames"].as_array().unwrap();
            let innermost =
                frames.iter().find(|frame| frame["module"] == self.module && !(self.is_library)(frame));
            let innermost = innermost
                .map_or(String::new(), |frame| place(&frame["symbol"], &frame["file"], &frame["line"]));
            // A block of the same size that no code of the program allocated is not counted.
            if innermost == blocks.place {
                blocks.right += count;
            } else {
                blocks.others.push((innermost, count));
            }
        }
        assert!(told.len() >= self.sizes, "{label}: {} sizes", told.len());
        let wrong: Vec<&Blocks> = told.values().filter(|blocks| blocks.right != blocks.told).collect();
        assert!(wrong.is_empty(), "{label}: {} of {} places are wrong: {wrong:#?}", wrong.len(), told.len());
    }

    /// Records the program from its start, and checks its blocks. Returns `None` if the trace says
    /// that this version of the language is unknown.
    pub(crate) fn check_from_start(&self, interpreter: &Path, verified: u64) -> Option<Recording> {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("told");
        let label = interpreter.display().to_string();
        let command = [label.clone(), self.victim(), file.to_str().unwrap().to_owned()];
        let environment: Vec<(String, String)> =
            self.environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let limit = Duration::from_secs(120);
        let settings = Settings {
            verify_every: self.verify_every,
            limit,
            environment: &environment,
            ..Settings::default()
        };
        let recording = record(&command, &settings);
        assert_eq!(recording.outcome.status, 0, "{label}: {}", recording.outcome.stderr);
        // A trace that could not be written, as on a full disk, proves nothing.
        assert!(!recording.outcome.stderr.contains("warning"), "{label}: {}", recording.outcome.stderr);
        if is_unknown(&recording) {
            not_run(format!("{label} is of a version whose frames are not known"));
            return None;
        }
        self.check(&recording, &file, &label);
        let info = recording.json(&["info"]);
        let statistic = |name: &str| {
            let all = info["statistics"].as_object().unwrap();
            all.get(name).and_then(Value::as_u64).unwrap_or(0)
        };
        assert!(statistic("stacks_verified") > verified, "{label}: {info:#}");
        assert_eq!(statistic("stacks_verified_mismatches"), 0, "{label}");
        Some(recording)
    }

    /// Attaches to the program before its work, and checks its blocks.
    pub(crate) fn check_attached(&self, interpreter: &Path) {
        let scratch = tempfile::tempdir().unwrap();
        let (file, trace) = (scratch.path().join("told"), scratch.path().join("trace.heapr"));
        let label = interpreter.display().to_string();
        let mut program = Command::new(interpreter)
            .args([self.victim(), file.to_str().unwrap().to_owned()])
            .env("VICTIM_WAITS", "1")
            .envs(self.environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut waits = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(program.stdout.take().unwrap()), &mut waits)
            .unwrap();
        let name = format!("telling-{}", program.id());
        let heapr = |words: &[&str]| with_sessions(scratch.path(), words);
        let pid = program.id().to_string();
        let started = heapr(&["start", &name, "--pid", &pid, "-o", trace.to_str().unwrap()]);
        program.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let status = program.wait().unwrap();
        let stopped = heapr(&["stop", &name]);
        assert_eq!(started.status, 0, "{label}: {}", started.stderr);
        assert!(status.success(), "{label}: {status}");
        assert_eq!(stopped.status, 0, "{label}: {}", stopped.stderr);
        let outcome = Outcome { status: 0, stdout: String::new(), stderr: String::new() };
        let recording = Recording::of_file(&trace, scratch, outcome);
        if is_unknown(&recording) {
            not_run(format!("{label} is of a version whose frames are not known"));
            return;
        }
        self.check(&recording, &file, &format!("{label}, attached"));
    }
}
