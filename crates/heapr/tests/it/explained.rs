//! Shared code of the tests of `heapr explain`: victims that made their memory and wait, and
//! answers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use heapr_testkit::{run, wait_until};
use serde_json::Value;

use crate::header::Header;
use crate::recording::command;
use crate::victim_build::{build, sources};

/// Victim that has made its memory and waits.
pub(crate) struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Bytes by kind that the victim printed.
    pub(crate) said: BTreeMap<String, u64>,
}

impl Waiting {
    pub(crate) fn start(victim: &str, arguments: &[&str]) -> Self {
        let header = Header::read(&sources().join(victim));
        let program = build(victim, &header, &["-O1".to_owned()]);
        let mut command = Command::new(program);
        command.args(arguments);
        Self::begin(command)
    }

    /// Runs a program that prints what it has, and then waits.
    pub(crate) fn begin(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let mut said = BTreeMap::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        while let Some((kind, bytes)) = said_in_line(&mut output) {
            said.insert(kind, bytes);
        }
        Self { child, input, output, said }
    }

    /// Sends a question to the victim and reads its answer.
    pub(crate) fn ask(&mut self, question: &str) -> (String, u64) {
        writeln!(self.input.as_ref().unwrap(), "{question}").unwrap();
        said_in_line(&mut self.output).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the victim.
    pub(crate) fn stop(&self) {
        let status = Command::new("kill").args(["-STOP", &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
        let state = format!("/proc/{}/stat", self.pid());
        wait_until("it stands still", || {
            let text = std::fs::read_to_string(&state).ok()?;
            text.rsplit(')').next()?.trim_start().starts_with('T').then_some(())
        });
    }
}

/// Parses `KIND BYTES`; `None` for any other line.
fn said_in_line(output: &mut impl BufRead) -> Option<(String, u64)> {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let (kind, bytes) = line.trim_end().split_once(' ')?;
    Some((kind.to_owned(), bytes.parse().unwrap()))
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn explain(pid: u32, options: &[&str]) -> Value {
    let outcome = run(command(&["explain", &pid.to_string(), "--format", "json"]).args(options));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Returns the kernel's resident bytes, summed in the test.
pub(crate) fn rss_bytes_of_smaps(pid: u32) -> u64 {
    smaps_bytes(pid, &["Rss:"])
}

/// Returns the sum of these amounts over all mappings.
pub(crate) fn smaps_bytes(pid: u32, names: &[&str]) -> u64 {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("smaps")).unwrap();
    let amounts = text.lines().filter_map(|line| names.iter().find_map(|name| line.strip_prefix(name)));
    amounts.map(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024).sum()
}

pub(crate) fn line<'a>(resident: &'a Value, class: &str) -> Option<&'a Value> {
    resident["lines"].as_array().unwrap().iter().find(|line| line["class"] == class)
}

pub(crate) fn bytes(resident: &Value, class: &str, key: &str) -> u64 {
    line(resident, class).map_or(0, |line| line[key].as_u64().unwrap())
}

pub(crate) fn assert_adds_up(answer: &Value, pid: u32) {
    let resident = &answer["resident"];
    let sum: u64 =
        resident["lines"].as_array().unwrap().iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, resident["rss_bytes"].as_u64().unwrap(), "{resident}");
    // The kernel may evict file pages at any time, also of a stopped process.
    let now = rss_bytes_of_smaps(pid);
    let of_files = bytes(resident, "code", "bytes") + bytes(resident, "read_only_data", "bytes");
    assert!((sum.saturating_sub(of_files)..=sum).contains(&now), "{now}: {resident}");
    assert_eq!(resident["unknown_bytes"].as_u64().unwrap(), bytes(resident, "unknown", "bytes"));
}
