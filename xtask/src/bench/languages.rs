//! Measures the cost of language frames: a script with and without them, beside memray, and a C
//! program, which has no such frames.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::inputs::{self, Program};
use super::measured_run::Cost;
use super::overhead::{Options, cost_of};
use super::spread::Spread;
use super::table::markdown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bare,
    Without,
    With,
    /// Memray as its users run it, with native frames.
    Memray,
}

const MODES: [Mode; 4] = [Mode::Bare, Mode::Without, Mode::With, Mode::Memray];

/// Programs, and whether memray can record them.
const PROGRAMS: [(&str, bool); 2] = [("python", true), ("jq", false)];
/// Time after which no further round of a program is begun.
const LIMIT: Duration = Duration::from_secs(150);
/// Interval in rounds at which memray is measured, because it takes far longer.
const MEMRAY_EVERY: usize = 4;

/// Measures and returns the table. Each round runs all modes there and back, so that a steady drift
/// cancels out. `HEAPR` names a program to use instead of the release build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let mut rows = Vec::new();
    for program in inputs::programs()? {
        let Some(&(_, is_python)) = PROGRAMS.iter().find(|(name, _)| *name == program.name) else { continue };
        if !options.wants(program.name) {
            continue;
        }
        let has_memray = is_python && has_memray(&program);
        let began = Instant::now();
        let mut of_rounds: Vec<[Cost; 4]> = Vec::new();
        let mut event_count = 0.0;
        for round in 0..options.rounds {
            if began.elapsed() > LIMIT {
                break;
            }
            let mut costs = [Cost::default(); 4];
            for step in (0..MODES.len()).chain((0..MODES.len()).rev()) {
                let mode = MODES[step];
                if mode == Mode::Memray && !(has_memray && round % MEMRAY_EVERY == 0) {
                    (costs[step].wall_s, costs[step].cpu_s) = (f64::NAN, f64::NAN);
                    continue;
                }
                let command = under(mode, &program, &heapr, &folder);
                let cost = cost_of(&command, &program.environment, None, &folder.join("log"))
                    .with_context(|| format!("{} {mode:?}", program.name))?;
                costs[step].wall_s += cost.wall_s / 2.0;
                costs[step].cpu_s += cost.cpu_s / 2.0;
                if mode == Mode::With && event_count == 0.0 {
                    event_count = events(&heapr, &folder)?;
                }
            }
            of_rounds.push(costs);
        }
        let spread = |of: &dyn Fn(&[Cost; 4]) -> f64| {
            let values: Vec<f64> = of_rounds.iter().map(of).filter(|value| value.is_finite()).collect();
            if values.is_empty() { "–".to_owned() } else { format!("{:.2}", Spread::of(values)) }
        };
        let per_event_ns = |seconds: f64| seconds / event_count * 1e9;
        let row = vec![
            program.name.to_owned(),
            of_rounds.len().to_string(),
            format!("{event_count}"),
            spread(&|costs| costs[0].cpu_s),
            spread(&|costs| per_event_ns(costs[2].cpu_s - costs[1].cpu_s)),
            spread(&|costs| per_event_ns(costs[2].wall_s - costs[1].wall_s)),
            spread(&|costs| (costs[2].cpu_s - costs[0].cpu_s) / (costs[3].cpu_s - costs[0].cpu_s)),
            spread(&|costs| (costs[2].wall_s - costs[0].wall_s) / (costs[3].wall_s - costs[0].wall_s)),
        ];
        eprintln!("{}", row.join("  "));
        rows.push(row);
    }
    let heading = [
        "program",
        "rounds",
        "events",
        "bare CPU s",
        "frames of the language, CPU ns an event",
        "wall ns an event",
        "all of heapr ÷ memray --native, added CPU",
        "added wall",
    ];
    Ok(format!(
        "## Frames of languages\n\nMedians of the rounds, of two runs each, and between what they lie in 19 of 20 cases. CPU time is that of \
         the whole tree, the recorder included.\n\n{}",
        markdown(&heading, &rows)
    ))
}

/// Returns the command of a mode.
fn under(mode: Mode, program: &Program, heapr: &str, folder: &Path) -> Vec<String> {
    let output = |name: &str| folder.join(name).display().to_string();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let heapr_run = |more: &[&str]| {
        let run = words(&[heapr, "run", "--quiet", "-f", "-o", &output("languages.heapr")]);
        [run, words(more), words(&["--"]), program.command.clone()].concat()
    };
    match mode {
        Mode::Bare => program.command.clone(),
        Mode::Without => heapr_run(&["--lang", "off"]),
        Mode::With => heapr_run(&[]),
        Mode::Memray => {
            let memray = ["-m", "memray", "run", "--native", "-q", "-f", "-o", &output("memray.bin")];
            [&program.command[..1], &words(&memray), &program.command[1..]].concat()
        }
    }
}

fn has_memray(program: &Program) -> bool {
    let mut look = Command::new(&program.command[0]);
    let environment: &BTreeMap<String, String> = &program.environment;
    look.args(["-c", "import memray"]).envs(environment).output().is_ok_and(|output| output.status.success())
}

fn events(heapr: &str, folder: &Path) -> anyhow::Result<f64> {
    let mut info = Command::new(heapr);
    info.args(["info", "--format", "json"]).arg(folder.join("languages.heapr"));
    let info: serde_json::Value = serde_json::from_str(&crate::output_of(&mut info)?)?;
    info["event_count"].as_f64().context("the number of events")
}
