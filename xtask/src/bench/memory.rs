//! Measures the memory of heapr itself: of the agent in a program, and of the recorder; beside
//! heaptrack's and memray's.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::inputs::{self, Program};
use super::table::markdown;

/// Interval at which the largest resident sets are read.
const INTERVAL: Duration = Duration::from_millis(5);

/// Tool under which the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Bare,
    Heapr,
    Heaptrack,
    Memray,
}

/// Largest resident sets of one run, in KiB.
#[derive(Debug, Clone, Copy, Default)]
struct Peaks {
    program_kib: u64,
    /// Sum over the tool's own programs.
    tool: Resident,
}

/// Resident memory of a program at its largest, in KiB.
#[derive(Debug, Clone, Copy, Default)]
struct Resident {
    all_kib: u64,
    /// Anonymous: neither pages of files nor buffers that are shared with the program.
    own_kib: u64,
}

/// Measures and returns the table. `HEAPR` names a program to use instead of the release build.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let mut rows = Vec::new();
    for program in inputs::programs()? {
        if !only.is_empty() && !only.contains(&program.name) {
            continue;
        }
        let peaks_of = |tool| {
            peaks(&command(tool, &program, &heapr, &folder), &program, &folder)
                .with_context(|| format!("{} {tool:?}", program.name))
        };
        let bare = peaks_of(Tool::Bare)?;
        let own = peaks_of(Tool::Heapr)?;
        let heaptrack = peaks_of(Tool::Heaptrack)?;
        let memray = if program.name == "python" { Some(peaks_of(Tool::Memray)?) } else { None };
        let row = row(&program, [bare, own, heaptrack], memray, &facts(&heapr, &folder)?);
        eprintln!("{}", row.join("  "));
        rows.push(row);
    }
    let heading = [
        "program",
        "bare MiB",
        "heapr adds",
        "agent's own",
        "bound",
        "recorder",
        "of it its own",
        "bound",
        "heaptrack adds",
        "its interpreter",
        "memray adds",
    ];
    Ok(format!(
        "## Memory of heapr itself\n\nLargest resident sets in MiB, read every {} ms. *adds*: of the program under a tool, above that of the bare \
         one; buffers that are shared with the recorder count in both. *agent's own*: private memory, as `heapr info` tells. *of it its own*: without \
         the pages of its program and the buffers. *bound*: 4 MiB and 64 KiB a thread; 30 MiB, 40 bytes a live block and 60 a stack.\n\n{}",
        INTERVAL.as_millis(),
        markdown(&heading, &rows)
    ))
}

fn trace(folder: &Path) -> String {
    folder.join("memory.heapr").display().to_string()
}

fn command(tool: Tool, program: &Program, heapr: &str, folder: &Path) -> Vec<String> {
    let output = |name: &str| folder.join(name).display().to_string();
    let under = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        [words, program.command.clone()].concat()
    };
    match tool {
        Tool::Bare => program.command.clone(),
        Tool::Heapr => under(&[heapr, "run", "--quiet", "-f", "-o", &trace(folder), "--"]),
        Tool::Heaptrack => under(&["heaptrack", "-o", &output("memory.heaptrack")]),
        Tool::Memray => {
            let [python, script @ ..] = program.command.as_slice() else { return Vec::new() };
            let words =
                [python, "-m", "memray", "run", "--native", "-q", "-f", "-o", &output("memory.memray")];
            [words.map(str::to_owned).to_vec(), script.to_vec()].concat()
        }
    }
}

/// Runs a command to its end, and reads the largest resident sets of its tree meanwhile.
fn peaks(command: &[String], program: &Program, folder: &Path) -> anyhow::Result<Peaks> {
    let watched = executable(&program.command[0])?;
    let log = folder.join("log");
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .envs(&program.environment)
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?)
        .spawn()
        .with_context(|| command.join(" "))?;
    let work = program.client.clone().map(|client| std::thread::spawn(move || serve(&client)));
    let mut by_program: BTreeMap<PathBuf, Resident> = BTreeMap::new();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(600) {
            // The program that a tool started would go on without it.
            let pids: Vec<String> = tree(child.id()).iter().map(u32::to_string).collect();
            Command::new("kill").arg("-9").args(pids).status()?;
            child.wait()?;
            bail!("{} has not ended after ten minutes", command.join(" "));
        }
        for pid in tree(child.id()) {
            let Some((path, now)) = resident(pid) else { continue };
            let known = by_program.entry(path).or_default();
            known.all_kib = now.all_kib.max(known.all_kib);
            known.own_kib = now.own_kib.max(known.own_kib);
        }
        std::thread::sleep(INTERVAL);
    };
    if let Some(work) = work {
        work.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
    }
    if !status.success() {
        bail!("{}: {status}; see {}", command.join(" "), log.display());
    }
    let program_kib = by_program.remove(&watched).context("the program was not seen")?.all_kib;
    let is_shell = |path: &PathBuf| {
        path.file_name().is_some_and(|name| ["dash", "bash"].iter().any(|shell| name == *shell))
    };
    by_program.retain(|path, _| !is_shell(path));
    let sum = |of: fn(&Resident) -> u64| by_program.values().map(of).sum();
    let tool = Resident { all_kib: sum(|it| it.all_kib), own_kib: sum(|it| it.own_kib) };
    Ok(Peaks { program_kib, tool })
}

/// Waits for the server, makes it work, and ends it.
fn serve(client: &inputs::Client) -> anyhow::Result<()> {
    let call = |words: &[String]| {
        Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let begin = Instant::now();
    while !call(&client.probe)?.success() {
        if begin.elapsed() > Duration::from_secs(20) {
            bail!("the server does not answer");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = call(&client.work)?;
    call(&client.stop)?;
    if !status.success() {
        bail!("{}: {status}", client.work.join(" "));
    }
    Ok(())
}

/// Path of the program that a command's first word starts, with links followed.
fn executable(word: &str) -> anyhow::Result<PathBuf> {
    let script = "command -v \"$1\"";
    let path = crate::output_of(Command::new("sh").args(["-c", script, "sh", word]))?;
    std::fs::canonicalize(path.trim()).with_context(|| word.to_owned())
}

/// Processes of a tree, by the kernel's lists of children.
fn tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    all
}

/// Program of a process and its resident memory; `None` once it has ended.
fn resident(pid: u32) -> Option<(PathBuf, Resident)> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((path, Resident { all_kib: kib("VmHWM:")?, own_kib: kib("RssAnon:")? }))
}

/// Numbers that bound the memory, and the memory of the agent.
struct Facts {
    agent_bytes: u64,
    thread_count: u64,
    live_count: u64,
    stack_count: u64,
}

fn facts(heapr: &str, folder: &Path) -> anyhow::Result<Facts> {
    let json = |arguments: &[&str]| -> anyhow::Result<Value> {
        let text = crate::output_of(Command::new(heapr).args(arguments).args(["--format", "json"]))?;
        serde_json::from_str(&text).with_context(|| format!("heapr {}", arguments.join(" ")))
    };
    let trace = trace(folder);
    let info = json(&["info", &trace])?;
    let totals = json(&["report", &trace, "--totals"])?["totals"].clone();
    let accounts = info["own_memory"].as_array().map_or(&[][..], Vec::as_slice);
    let agent_bytes = accounts.iter().filter_map(|account| account["agent_bytes"].as_u64()).max();
    let chunks = info["chunks"].as_array().context("no chunks")?.iter();
    let chunks = chunks.filter(|chunk| chunk["kind"] == "stacks");
    Ok(Facts {
        agent_bytes: agent_bytes.unwrap_or(0),
        thread_count: info["threads"].as_array().context("no threads")?.len() as u64,
        live_count: totals["peak_count"].as_u64().context("no peak_count")?,
        stack_count: chunks.filter_map(|chunk| chunk["item_count"].as_u64()).sum(),
    })
}

fn row(program: &Program, peaks: [Peaks; 3], memray: Option<Peaks>, facts: &Facts) -> Vec<String> {
    let [bare, own, heaptrack] = peaks;
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    let added = |peaks: Peaks| mib(peaks.program_kib.saturating_sub(bare.program_kib));
    let agent_bound_kib = 4096 + 64 * facts.thread_count;
    let recorder_bound_kib = 30 * 1024 + (40 * facts.live_count + 60 * facts.stack_count) / 1024;
    vec![
        program.name.into(),
        mib(bare.program_kib),
        added(own),
        if facts.agent_bytes == 0 { "unknown".into() } else { mib(facts.agent_bytes / 1024) },
        mib(agent_bound_kib),
        mib(own.tool.all_kib),
        mib(own.tool.own_kib),
        mib(recorder_bound_kib),
        added(heaptrack),
        mib(heaptrack.tool.all_kib),
        memray.map_or("–".into(), added),
    ]
}
