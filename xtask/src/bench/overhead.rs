//! Compares the time that heapr adds to real programs with what heaptrack adds to the same run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::inputs::{self, Client, Program};
use super::measured_run::{Cost, MEASURED_PRELOAD, MeasuredRun, median};
use super::spread::{Spread, fastest_quarter};
use super::table::markdown;

/// Number of rounds, and choice of programs.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(super) rounds: usize,
    only: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        // With five rounds of the same binary a ratio of 0.2 was measured as 0.15 to 0.25.
        Self { rounds: 15, only: Vec::new() }
    }
}

impl Options {
    /// Parses `--rounds N` and `--only PROGRAM,PROGRAM`.
    pub(crate) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--rounds" => options.rounds = value.parse().with_context(|| format!("--rounds {value}"))?,
                "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                _ => bail!("{word} is no option of bench overhead"),
            }
        }
        Ok(options)
    }

    /// Whether a program is to be measured.
    pub(super) fn wants(&self, program: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == program)
    }
}

/// Tool under which the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Bare,
    Disabled,
    Heaptrack,
    Heapr,
}

const MODES: [Mode; 4] = [Mode::Bare, Mode::Disabled, Mode::Heaptrack, Mode::Heapr];

/// Measures and returns the tables. `HEAPR` names a program to use instead of the release build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let agent = crate::check_agent::built_agent()?.display().to_string();
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let mut times = Vec::new();
    let mut events = Vec::new();
    for program in inputs::programs()? {
        if !options.wants(program.name) {
            continue;
        }
        let mut costs: BTreeMap<Mode, Vec<Cost>> = BTreeMap::new();
        // Interleaved, and in a rotating order: the machine's other load affects all modes alike.
        for round in 0..options.rounds {
            for step in 0..MODES.len() {
                let mode = MODES[(step + round) % MODES.len()];
                let (command, environment) = under(mode, &program, &heapr, &agent, &folder);
                let cost = cost_of(&command, &environment, program.client.as_ref(), &folder.join("log"))
                    .with_context(|| format!("{} {mode:?}", program.name))?;
                costs.entry(mode).or_default().push(cost);
                eprintln!("{} {mode:?}: {:.3} s wall, {:.3} s CPU", program.name, cost.wall_s, cost.cpu_s);
            }
        }
        let medians: BTreeMap<Mode, Cost> =
            costs.iter().map(|(mode, costs)| (*mode, median(costs))).collect();
        times.push(time_row(&program, &medians, &costs));
        events.push(event_row(&program, &medians, &heapr, &folder)?);
    }
    let heading = [
        "program",
        "bare s",
        "disabled",
        "heaptrack s",
        "heapr s",
        "added wall ÷ heaptrack's",
        "fastest quarter",
        "bare CPU s",
        "heaptrack CPU s",
        "heapr CPU s",
        "added CPU ÷ heaptrack's",
        "fastest quarter",
    ];
    let event_heading = [
        "program",
        "events",
        "file bytes",
        "bytes per event",
        "added ns per event",
        "lost",
        "stacks checked",
        "mismatches",
    ];
    Ok(format!(
        "## Overhead\n\nMedians of {} interleaved rounds. *disabled*: the agent loaded but switched off, against bare. In brackets: the 95 % interval of the \
         median of the rounds' own ratios. *fastest quarter*: the ratio of the means of the fastest quarter of the rounds of each.\n\n{}\n{}",
        options.rounds,
        markdown(&heading, &times),
        markdown(&event_heading, &events)
    ))
}

fn trace_path(folder: &Path, program: &Program) -> String {
    folder.join(format!("{}.heapr", program.name)).display().to_string()
}

/// Returns the command of a program in a mode, and its environment. `heapr` is only used in its own
/// mode.
pub(super) fn under(
    mode: Mode,
    program: &Program,
    heapr: &str,
    agent: &str,
    folder: &Path,
) -> (Vec<String>, BTreeMap<String, String>) {
    let mut environment = program.environment.clone();
    let prefix: Vec<String> = match mode {
        Mode::Bare => Vec::new(),
        Mode::Disabled => {
            environment.insert(MEASURED_PRELOAD.into(), agent.into());
            environment.insert("HEAPR_DISABLE".into(), "1".into());
            Vec::new()
        }
        Mode::Heaptrack => {
            let output = folder.join(format!("{}.heaptrack", program.name)).display().to_string();
            ["heaptrack", "-o", &output].map(str::to_owned).to_vec()
        }
        Mode::Heapr => {
            let output = trace_path(folder, program);
            [heapr, "run", "--quiet", "-f", "-o", &output, "--"].map(str::to_owned).to_vec()
        }
    };
    ([prefix, program.command.clone()].concat(), environment)
}

/// Measures one run. For a server: wall time of its client's work, CPU time and memory of the
/// server alone.
pub(super) fn cost_of(
    command: &[String],
    environment: &BTreeMap<String, String>,
    client: Option<&Client>,
    log: &Path,
) -> anyhow::Result<Cost> {
    let running = MeasuredRun::start(command, environment, log)?;
    let Some(client) = client else { return running.finish() };
    let call = |words: &[String]| {
        Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let begin = Instant::now();
    while !call(&client.probe)?.success() {
        if begin.elapsed() > Duration::from_secs(20) {
            bail!("the server does not answer; see {}", log.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let begin = Instant::now();
    let status = call(&client.work)?;
    let wall_s = begin.elapsed().as_secs_f64();
    call(&client.stop)?;
    let cost = running.finish()?;
    if !status.success() {
        bail!("{}: {status}", client.work.join(" "));
    }
    Ok(Cost { wall_s, ..cost })
}

fn time_row(
    program: &Program,
    medians: &BTreeMap<Mode, Cost>,
    costs: &BTreeMap<Mode, Vec<Cost>>,
) -> Vec<String> {
    let cost = |mode| medians.get(&mode).copied().unwrap_or_default();
    let [bare, _, heaptrack, heapr] = MODES.map(cost);
    let rounds = || {
        let of = |mode| costs.get(&mode).map_or(&[][..], Vec::as_slice);
        let [bare, disabled, heaptrack, heapr] = MODES.map(of);
        bare.iter().zip(disabled).zip(heaptrack.iter().zip(heapr))
    };
    let disabled = Spread::of(rounds().map(|((bare, disabled), _)| disabled.wall_s / bare.wall_s));
    let added =
        |bare: f64, heaptrack: f64, heapr: f64| (heapr - bare) / (heaptrack - bare).max(f64::MIN_POSITIVE);
    let share = |number: fn(&Cost) -> f64| {
        let of = |bare: &Cost, heaptrack: &Cost, heapr: &Cost| {
            added(number(bare), number(heaptrack), number(heapr))
        };
        let by_round = rounds().map(|((bare, _), (heaptrack, heapr))| of(bare, heaptrack, heapr));
        format!("{:.2} ({})", of(&bare, &heaptrack, &heapr), Spread::of(by_round).range(2))
    };
    let quarter = |number: fn(&Cost) -> f64| {
        let of = |mode| fastest_quarter(costs.get(&mode).into_iter().flatten().map(number));
        format!("{:.2}", added(of(Mode::Bare), of(Mode::Heaptrack), of(Mode::Heapr)))
    };
    vec![
        program.name.into(),
        format!("{:.3}", bare.wall_s),
        format!("{disabled:.2}"),
        format!("{:.3}", heaptrack.wall_s),
        format!("{:.3}", heapr.wall_s),
        share(|cost| cost.wall_s),
        quarter(|cost| cost.wall_s),
        format!("{:.3}", bare.cpu_s),
        format!("{:.3}", heaptrack.cpu_s),
        format!("{:.3}", heapr.cpu_s),
        share(|cost| cost.cpu_s),
        quarter(|cost| cost.cpu_s),
    ]
}

/// Returns the row of events and bytes of the last run, and of a separate run in which every 64th
/// stack is checked.
fn event_row(
    program: &Program,
    medians: &BTreeMap<Mode, Cost>,
    heapr: &str,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let trace = trace_path(folder, program);
    let json = |arguments: &[&str]| -> anyhow::Result<serde_json::Value> {
        let text = crate::output_of(Command::new(heapr).args(arguments).args(["--format", "json"]))?;
        serde_json::from_str(&text).with_context(|| format!("heapr {}", arguments.join(" ")))
    };
    let totals = json(&["report", &trace, "--totals"])?["totals"].clone();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let event_count = number(&totals["alloc_count"]) + number(&totals["free_count"]);
    if event_count == 0 {
        bail!("{}: heapr recorded nothing", program.name);
    }
    let file_bytes = std::fs::metadata(&trace)?.len();
    let cost = |mode| medians.get(&mode).copied().unwrap_or_default();
    let added_ns = (cost(Mode::Heapr).wall_s - cost(Mode::Bare).wall_s) * 1e9 / event_count as f64;
    let (command, mut environment) = under(Mode::Heapr, program, heapr, "", folder);
    environment.insert("HEAPR_VERIFY".into(), "64".into());
    cost_of(&command, &environment, program.client.as_ref(), &folder.join("log"))?;
    let statistics = json(&["info", &trace])?["statistics"].clone();
    Ok(vec![
        program.name.into(),
        event_count.to_string(),
        file_bytes.to_string(),
        format!("{:.2}", file_bytes as f64 / event_count as f64),
        format!("{added_ns:.0}"),
        number(&totals["lost_events"]).to_string(),
        number(&statistics["stacks_verified"]).to_string(),
        number(&statistics["stacks_verified_mismatches"]).to_string(),
    ])
}
