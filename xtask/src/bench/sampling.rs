//! Measures the cost of sampling: added processor time of programs, beside jemalloc's own sampling;
//! and the recorder of ten processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::inputs::{self, Program};
use super::measured_run::{Cost, MEASURED_PRELOAD};
use super::overhead::{Options, cost_of};
use super::spread::Spread;
use super::table::markdown;

/// Path of Debian's jemalloc, which can sample by itself.
const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bare,
    /// heapr is loaded and takes no samples: the cost of its start and end.
    Off,
    Sampled,
    Jemalloc,
    JemallocSampling,
}

const MODES: [Mode; 5] = [Mode::Bare, Mode::Off, Mode::Sampled, Mode::Jemalloc, Mode::JemallocSampling];

fn under(
    mode: Mode,
    program: &Program,
    heapr: &str,
    folder: &Path,
) -> (Vec<String>, BTreeMap<String, String>) {
    let mut environment = program.environment.clone();
    let sample = match mode {
        Mode::Off => "off",
        Mode::Sampled => "512K",
        Mode::Bare => return (program.command.clone(), environment),
        Mode::Jemalloc | Mode::JemallocSampling => {
            environment.insert(MEASURED_PRELOAD.into(), JEMALLOC.into());
            if mode == Mode::JemallocSampling {
                environment
                    .insert("MALLOC_CONF".into(), "prof:true,prof_active:true,lg_prof_sample:19".into());
            }
            return (program.command.clone(), environment);
        }
    };
    let output = folder.join("sampling.heapr").display().to_string();
    let prefix = [heapr, "run", "--quiet", "-f", "--sample", sample, "-o", &output, "--"].map(str::to_owned);
    ([prefix.to_vec(), program.command.clone()].concat(), environment)
}

/// Programs with a bound on their cost.
const PROGRAMS: [&str; 5] = ["jq", "clang++", "node", "redis", "python"];
/// Time after which no further round of a program is begun: all five and the recorder take 20
/// minutes.
const LIMIT: Duration = Duration::from_secs(210);
/// Interval in rounds at which jemalloc is measured, too.
const JEMALLOC_EVERY: usize = 3;

/// Measures and returns the tables. Each round runs all modes there and back, so that a steady
/// drift cancels out. `HEAPR` names a program to use instead of the release build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let has_jemalloc = Path::new(JEMALLOC).exists();
    let mut rows = Vec::new();
    for program in inputs::programs()? {
        if !PROGRAMS.contains(&program.name) || !options.wants(program.name) {
            continue;
        }
        let began = Instant::now();
        let mut of_rounds: Vec<[f64; 5]> = Vec::new();
        for round in 0..options.rounds {
            if began.elapsed() > LIMIT {
                break;
            }
            let mut cpu_s = [0.0; 5];
            for step in (0..MODES.len()).chain((0..MODES.len()).rev()) {
                let mode = MODES[step];
                if matches!(mode, Mode::Jemalloc | Mode::JemallocSampling)
                    && (!has_jemalloc || round % JEMALLOC_EVERY != 0)
                {
                    continue;
                }
                let (command, environment) = under(mode, &program, &heapr, &folder);
                let Cost { cpu_s: took_s, .. } =
                    cost_of(&command, &environment, program.client.as_ref(), &folder.join("log"))
                        .with_context(|| format!("{} {mode:?}", program.name))?;
                cpu_s[step] += took_s;
            }
            of_rounds.push(cpu_s);
        }
        let percent = |of: fn(&[f64; 5]) -> f64| {
            let parts = of_rounds.iter().map(of).filter(|part| part.is_finite());
            format!("{:.2}", Spread::of(parts.map(|part| part * 100.0)))
        };
        let row = vec![
            program.name.to_owned(),
            of_rounds.len().to_string(),
            format!("{:.3}", Spread::of(of_rounds.iter().map(|cpu_s| cpu_s[0] / 2.0)).median),
            percent(|cpu_s| (cpu_s[2] - cpu_s[0]) / cpu_s[0]),
            percent(|cpu_s| (cpu_s[2] - cpu_s[1]) / cpu_s[0]),
            if has_jemalloc { percent(|cpu_s| (cpu_s[4] - cpu_s[3]) / cpu_s[3]) } else { "–".to_owned() },
        ];
        eprintln!("{}", row.join("  "));
        rows.push(row);
    }
    let heading = [
        "program",
        "rounds",
        "bare CPU s",
        "all of heapr, percent",
        "samples against none, percent",
        "jemalloc's own sampling, percent",
    ];
    Ok(format!(
        "## Sampling every 512 KiB\n\nAdded processor time of the whole tree, the recorder included: medians of the rounds, of two runs \
         each, and between what they lie in 19 of 20 cases.\n\n{}\n{}",
        markdown(&heading, &rows),
        recorder(&heapr, &folder)?
    ))
}

const PROCESSES: usize = 10;
const LOOKED_AT: Duration = Duration::from_secs(60);

/// Script that allocates some 4 MB a second.
const SERVICE: &str = "import json, time\ncache = {}\nn = 0\nwhile True:\n    n += 1\n    \
                       cache[n % 5000] = json.loads(json.dumps({'n': n, 'text': 'x' * 4000}))\n    time.sleep(0.002)\n";

/// Processes that are killed when this is dropped.
struct Services(Vec<Child>);

impl Drop for Services {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Measures processor time and memory of the recorder of ten processes at work.
fn recorder(heapr: &str, folder: &Path) -> anyhow::Result<String> {
    let python = crate::output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let mut services = Services(Vec::new());
    for _ in 0..PROCESSES {
        let mut command = Command::new(python.trim());
        command.args(["-c", SERVICE]).env("PYTHONMALLOC", "malloc").stdin(Stdio::null());
        services.0.push(command.spawn()?);
    }
    std::thread::sleep(Duration::from_secs(2));
    let pids: Vec<String> = services.0.iter().map(|child| child.id().to_string()).collect();
    let runtime = tempfile::tempdir()?;
    let output = folder.join("ten.heapr").display().to_string();
    let call = |words: &[&str]| {
        let mut command = Command::new(heapr);
        command.args(words).env("HEAPR_RUNTIME_DIR", runtime.path());
        crate::output_of(&mut command)
    };
    call(&["start", "ten", "--sample", "512K", "-f", "-o", &output, "--pid", &pids.join(",")])?;
    let status: serde_json::Value = serde_json::from_str(&call(&["status", "ten", "--format", "json"])?)?;
    let pid = status["sessions"][0]["recorder_pid"].as_u64().context("no recorder")?;
    // The cost of attaching must not count as that of recording.
    std::thread::sleep(Duration::from_secs(10));
    let before = ticks(pid)?;
    std::thread::sleep(LOOKED_AT);
    let used = ticks(pid)? - before;
    let memory = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = |name: &str| {
        let line = memory.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    call(&["stop", "ten", "-q"])?;
    let row = vec![
        PROCESSES.to_string(),
        format!("{:.2}", used as f64 / LOOKED_AT.as_secs_f64()),
        format!("{:.1}", kib("VmRSS:")),
        format!("{:.1}", kib("RssAnon:")),
        format!("{:.1}", kib("VmHWM:")),
    ];
    let heading =
        ["processes", "percent of a core", "resident MiB", "of it its own", "most (while attaching) MiB"];
    Ok(format!("## The recorder\n\nOver {} seconds.\n\n{}", LOOKED_AT.as_secs(), markdown(&heading, &[row])))
}

/// Processor time of a process in hundredths of a second.
fn ticks(pid: u64) -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no fields")?;
    let fields: Vec<u64> = fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    Ok(fields.get(11).context("no user time")? + fields.get(12).context("no system time")?)
}
