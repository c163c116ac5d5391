//! Counts a job.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;

use super::super::callgrind;
use super::super::view::Viewing;
use super::inputs::Inputs;
use super::jobs::{Job, Work};
use super::record::Counts;

/// Number of events of the shorter run of a kind.
const EVENTS_BEFORE: u64 = 1_000;
/// Numbers of events of the recorder's shorter and longer run.
const RECORDED_EVENTS: [u64; 2] = [20_000, 120_000];
/// Waiting for a program to be ready, at most.
const PATIENCE: Duration = Duration::from_secs(1800);
/// System calls of who waits, or gives memory back when there is time; they are not counted.
const NOT_COUNTED: &str =
    "trace=!futex,sched_yield,madvise,wait4,waitid,clock_nanosleep,clock_gettime,ppoll,poll";

/// Counts of one job.
pub(super) fn measure(job: &Job, inputs: &Inputs) -> anyhow::Result<Counts> {
    let runs = Runs { heapr: &inputs.heapr(), inputs };
    match &job.work {
        Work::Events { kind, library, options, more_events } => {
            runs.events(kind, *library, options, *more_events)
        }
        Work::Program { command } => runs.program(&inputs.filled(command)?),
        Work::Recorder { command } => runs.recorder(&inputs.filled(command)?),
        Work::RecorderEvents => runs.recorder_events(),
        Work::Command { arguments, is_first } => runs.command(&inputs.filled(arguments)?, *is_first),
        Work::View => runs.view(),
        Work::Running { script } => runs.running(script),
    }
}

/// Measured program and its inputs.
struct Runs<'a> {
    heapr: &'a str,
    inputs: &'a Inputs,
}

impl Runs<'_> {
    /// The agent's instructions for a thousand events more, as a mean of `more_events`.
    fn events(
        &self,
        kind: &str,
        library: Option<&str>,
        options: &[&str],
        more_events: u64,
    ) -> anyhow::Result<Counts> {
        let [events] = &self.inputs.filled(&["{events}"])?[..] else { bail!("no program of events") };
        let of = |count: u64| {
            let mut program = vec![events.clone(), kind.to_owned(), count.to_string()];
            program.extend(library.map(str::to_owned));
            self.agent(&program, options)
        };
        let more = of(EVENTS_BEFORE + more_events)?.saturating_sub(of(EVENTS_BEFORE)?);
        let instructions = more * 1_000 / more_events;
        Ok(Counts { instructions: Some(instructions), ..Counts::default() })
    }

    /// The agent's instructions in a program.
    fn agent(&self, program: &[String], options: &[&str]) -> anyhow::Result<u64> {
        let counts = self.inputs.file("callgrind");
        let trace = self.inputs.file("recorded.heapr").display().to_string();
        // Without address space randomization: the time for the agent's table searches depends on
        // addresses.
        let run = ["setarch", "-R", self.heapr, "run", "--quiet", "-f", "-o", &trace];
        let words: Vec<String> =
            run.iter().chain(options).chain(&["--"]).map(|&word| word.to_owned()).collect();
        done(self.inputs.command(&[words, valgrind(&counts), program.to_vec()].concat()))?;
        let text = std::fs::read_to_string(&counts).with_context(|| counts.display().to_string())?;
        Ok(callgrind::agent_functions(&text).values().sum())
    }

    fn program(&self, program: &[String]) -> anyhow::Result<Counts> {
        let trace = self.inputs.file("recorded.heapr").display().to_string();
        let run = [self.heapr, "run", "--quiet", "-f", "-o", &trace, "--"].map(str::to_owned);
        let [recorded, bare] = [&run[..], &[]].map(|first| self.system_calls(first, program));
        Ok(Counts {
            instructions: Some(self.agent(program, &[])?),
            system_calls: Some(recorded?.saturating_sub(bare?)),
            peak_kib: None,
        })
    }

    fn recorder(&self, program: &[String]) -> anyhow::Result<Counts> {
        let trace = self.inputs.file("recorded.heapr").display().to_string();
        let run = ["run", "--quiet", "-f", "-o", &trace];
        let mut words: Vec<String> = run.iter().map(|&word| word.to_owned()).collect();
        words.push("--".into());
        words.extend_from_slice(program);
        // The first run fills the caches.
        let peak_kib = self.peak_kib(&words)?;
        Ok(Counts {
            instructions: Some(self.instructions(&words)?),
            system_calls: None,
            peak_kib: Some(peak_kib),
        })
    }

    fn recorder_events(&self) -> anyhow::Result<Counts> {
        let [events] = &self.inputs.filled(&["{events}"])?[..] else { bail!("no program of events") };
        let of = |count: u64| {
            let counts = self.recorder(&[events.clone(), "deep".into(), (count / 2).to_string()])?;
            counts.instructions.context("instructions")
        };
        let instructions = of(RECORDED_EVENTS[1])?.saturating_sub(of(RECORDED_EVENTS[0])?);
        Ok(Counts { instructions: Some(instructions), ..Counts::default() })
    }

    fn command(&self, arguments: &[String], is_first: bool) -> anyhow::Result<Counts> {
        let prepare = || self.inputs.forget(is_first);
        // The first run fills the caches.
        prepare()?;
        done(self.inputs.command(&[vec![self.heapr.to_owned()], arguments.to_vec()].concat()))?;
        prepare()?;
        let peak_kib = Some(self.peak_kib(arguments)?);
        prepare()?;
        let system_calls =
            Some(self.system_calls(&[], &[vec![self.heapr.to_owned()], arguments.to_vec()].concat())?);
        prepare()?;
        Ok(Counts { peak_kib, system_calls, instructions: Some(self.instructions(arguments)?) })
    }

    /// Instructions of heapr with these arguments.
    fn instructions(&self, arguments: &[String]) -> anyhow::Result<u64> {
        let counts = self.inputs.file("callgrind");
        let words = [self.measured(&counts), arguments.to_vec()].concat();
        done(self.inputs.command(&words))?;
        total(&counts)
    }

    /// Command for heapr under Callgrind.
    fn measured(&self, counts: &Path) -> Vec<String> {
        [vec!["setarch".into(), "-R".into()], valgrind(counts), vec![self.heapr.to_owned()]].concat()
    }

    /// System calls of a program with all of its children. `first`: command that runs it, whose
    /// calls are left out.
    fn system_calls(&self, first: &[String], program: &[String]) -> anyhow::Result<u64> {
        let counts = self.inputs.file("strace");
        let strace = ["strace", "-f", "-c", "-e", NOT_COUNTED, "-o"].map(str::to_owned);
        let strace = [strace.to_vec(), vec![counts.display().to_string()]].concat();
        done(self.inputs.command(&[first, &strace, program].concat()))?;
        let text = std::fs::read_to_string(&counts).with_context(|| counts.display().to_string())?;
        let line = text.lines().rev().find(|line| line.ends_with(" total")).context("strace's total")?;
        line.split_whitespace().nth(3).and_then(|calls| calls.parse().ok()).context("strace's total")
    }

    /// Largest resident set of a process of heapr with these arguments.
    fn peak_kib(&self, arguments: &[String]) -> anyhow::Result<u64> {
        let result = self.inputs.file("measured");
        let xtask = std::env::current_exe()?.display().to_string();
        let words = [xtask, "measure".into(), result.display().to_string(), self.heapr.to_owned()];
        done(self.inputs.command(&[words.to_vec(), arguments.to_vec()].concat()))?;
        let text = std::fs::read_to_string(&result)?;
        text.split_whitespace().nth(2).and_then(|kib| kib.parse().ok()).context("peak memory")
    }

    /// Counts the page's server for the answers that its first picture needs.
    fn view(&self) -> anyhow::Result<Counts> {
        let counts = self.inputs.file("callgrind");
        let words = self.measured(&counts);
        let viewing = Viewing::start_as(self.inputs.command(&words), &self.inputs.file("trace.heapr"))?;
        let all = json!({"file": 0, "filter": {}});
        let requests = [
            ("timeline", json!({"file": 0, "filter": {}, "by": "image"})),
            ("flame", all.clone()),
            ("report", json!({"file": 0, "filter": {}, "by": "stacks", "limit": 100})),
            ("histograms", all.clone()),
            ("types", all),
        ];
        for (name, body) in requests {
            viewing.ask(name, &body)?;
        }
        viewing.end()?;
        let instructions = total(&counts)?;
        Ok(Counts { instructions: Some(instructions), ..Counts::default() })
    }

    /// Counts commands on a process that sleeps.
    fn running(&self, script: &str) -> anyhow::Result<Counts> {
        let mut sleeper = Sleeper::start(self.inputs)?;
        let pid = sleeper.0.id().to_string();
        let shell = ["sh", "-c", script, self.heapr, &pid].map(str::to_owned);
        // The first round fills the caches.
        done(self.inputs.command(&shell))?;
        let system_calls = Some(self.system_calls(&[], &shell)?);
        if sleeper.0.try_wait()?.is_some() {
            bail!("the program has ended");
        }
        Ok(Counts { system_calls, ..Counts::default() })
    }
}

/// Python process that has some blocks and sleeps until it is killed.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn start(inputs: &Inputs) -> anyhow::Result<Self> {
        let script = "import json, time; kept = [json.loads('[1, {\"a\": 2}]') for _ in range(5000)]; print('ready', flush=True)\nwhile True: time.sleep(1)";
        let mut child = inputs
            .command(&["/usr/bin/python3", "-c", script].map(str::to_owned))
            .stdout(Stdio::piped())
            .spawn()
            .context("python3")?;
        let mut ready = [0_u8; 6];
        let output = child.stdout.as_mut().context("its output")?;
        std::io::Read::read_exact(output, &mut ready)?;
        Ok(Self(child))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn valgrind(counts: &Path) -> Vec<String> {
    let file = format!("--callgrind-out-file={}", counts.display());
    ["valgrind", "--quiet", "--tool=callgrind", &file].map(str::to_owned).to_vec()
}

fn total(counts: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(counts).with_context(|| counts.display().to_string())?;
    callgrind::total(&text).with_context(|| format!("{}: no total", counts.display()))
}

/// Runs a command to its end; status 1 (it found something) is accepted.
fn done(mut command: Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().with_context(|| shown.clone())?;
    let begin = Instant::now();
    let errors = child.stderr.take().context("its errors")?;
    let read = std::thread::spawn(move || std::io::read_to_string(errors).unwrap_or_default());
    while child.try_wait()?.is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            bail!("{shown} has not ended after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait()?;
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => bail!("{shown}: {status}\n{}", read.join().unwrap_or_default()),
    }
}
