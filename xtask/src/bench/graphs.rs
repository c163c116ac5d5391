//! Measures graphs of native heaps, in four parts:
//!
//! * the standstill of a process with a gigabyte
//! * the loss of a server under load while its copy is searched
//! * the time for ten million blocks
//! * the time for the first and the second question about them
//!
//! `HEAPR` names a program to use instead of a new build, `HEAPR_KEYS` and `HEAPR_BLOCKS` smaller
//! heaps.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::table::markdown;

/// Longest time for ten million blocks to be allocated and searched.
const READY_LIMIT: Duration = Duration::from_secs(900);
/// Number of copies of a process of a gigabyte.
const ROUNDS: u32 = 200;
/// Requested bytes of each of the ten million blocks: a gigabyte with the allocator's overhead.
const BLOCK_BYTES: &str = "88";
/// Number of keys of a server of a gigabyte, and bytes of their values.
const KEYS: [&str; 2] = ["5000000", "120"];
const PORT: &str = "7519";
/// Interval between two readings of a server's work.
const TICK: Duration = Duration::from_millis(100);
/// Time for which a server is watched before and after.
const AROUND: Duration = Duration::from_secs(5);
/// Percentage of the former speed below which a server counts as held up.
const HELD_UP_PERCENT: f64 = 90.0;

/// Measures and returns the tables, of all or `only` some of `pause`, `load`, `analysis` and
/// `questions`.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<String> {
    let is_asked = |part: &str| only.is_empty() || only.contains(&part);
    let mut parts = vec!["## Graphs of native heaps".to_owned()];
    if is_asked("pause") {
        parts.push(pause()?);
    }
    if is_asked("load") {
        parts.push(load()?);
    }
    if is_asked("analysis") {
        parts.push(analysis()?);
    }
    if is_asked("questions") {
        parts.push(questions()?);
    }
    Ok(parts.join("\n\n"))
}

/// Process that is killed when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn release(arguments: &[&str]) -> anyhow::Result<()> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p"]).args(arguments))
}

fn pause() -> anyhow::Result<String> {
    release(&["heapr-session", "--example", "graph_pause"])?;
    let copies = crate::check_agent::target_folder()?.join("release/examples/graph_pause");
    let program = super::inputs::folder()?.join("live_blocks");
    let source = crate::root().join("benches/live_blocks.c");
    crate::run(Command::new("gcc").args(["-O1", "-g", "-fno-builtin", "-o"]).arg(&program).arg(source))?;
    let mut held = Command::new(&program);
    let held = Ended(held.args([BLOCK_BYTES, "1000"]).stdout(Stdio::null()).spawn()?);
    std::thread::sleep(AROUND);
    let line = crate::output_of(Command::new(copies).args([held.0.id().to_string(), ROUNDS.to_string()]))?;
    let report: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
    ensure!(report["uncopied"].is_null(), "it was not copied: {}", report["uncopied"]);
    let row = |(what, key): &(&str, &str)| {
        let ms = |place: usize| format!("{:.2}", report[*key][place].as_f64().unwrap_or(f64::NAN) / 1e3);
        vec![(*what).to_owned(), ms(0), ms(1)]
    };
    let rows = [
        ("stands still", "pause_us"),
        ("stop", "stop_us"),
        ("settle", "settle_us"),
        ("registers", "registers_us"),
        ("copy", "copy_us"),
        ("take down", "take_down_us"),
        ("let go", "resume_us"),
        ("its thread ran, between two looks", "ran_us"),
        ("its thread waited for a processor", "waited_us"),
    ];
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    Ok(format!(
        "A process of a gigabyte in ten million blocks is copied {ROUNDS} times.\n\n{}",
        markdown(&["part", "median ms", "99 of 100"], &rows)
    ))
}

fn load() -> anyhow::Result<String> {
    let heapr = crate::soak_graph_kills::heapr()?;
    let keys = std::env::var("HEAPR_KEYS").unwrap_or_else(|_| KEYS[0].to_owned());
    let folder = tempfile::tempdir()?;
    let mut server = Command::new("redis-server");
    server.args(["--port", PORT, "--save", "", "--enable-debug-command", "yes"]).stdout(Stdio::null());
    let server = Ended(server.spawn().context("redis-server")?);
    std::thread::sleep(Duration::from_secs(1));
    let populate = ["-p", PORT, "debug", "populate", &keys, "key", KEYS[1]];
    crate::output_of(Command::new("redis-cli").args(populate))?;
    let pid = server.0.id().to_string();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&heapr);
        command.args(arguments).current_dir(folder.path());
        command.env("HEAPR_RUNTIME_DIR", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        command.stdout(Stdio::null());
        command
    };
    crate::run(&mut command(&[
        "start", "redis", "-q", "-o", "r.heapr", "--mode", "snapshot", "--pid", &pid,
    ]))?;
    let mut client = Command::new("redis-benchmark");
    client.args(["-p", PORT, "-l", "-q", "-c", "20", "-t", "set", "-d", KEYS[1], "-r", &keys]);
    let client = Ended(client.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    std::thread::sleep(AROUND);
    let before = watch(|begin| begin.elapsed() < AROUND)?;
    let mut taking = command(&["snapshot", "take", "--graph", "-q", &pid]).spawn()?;
    let during = watch(|_| matches!(taking.try_wait(), Ok(None)))?;
    ensure!(taking.wait()?.success(), "no graph was taken");
    let after = watch(|begin| begin.elapsed() < AROUND)?;
    drop(client);
    crate::run(&mut command(&["cancel", "redis"]))?;
    let mean = |speeds: &[f64]| speeds.iter().sum::<f64>() / speeds.len().max(1) as f64;
    let usual = mean(&before);
    let percent = |speed: f64| format!("{:.0}", speed * 100.0 / usual);
    let slow = during.iter().filter(|&&speed| speed * 100.0 < usual * HELD_UP_PERCENT).count();
    let worst = during.iter().copied().fold(f64::INFINITY, f64::min);
    let seconds = |ticks: usize| format!("{:.1}", ticks as f64 * TICK.as_secs_f64());
    let row = vec![
        format!("{usual:.0}"),
        seconds(during.len()),
        percent(mean(&during)),
        seconds(slow),
        percent(worst),
        percent(mean(&after)),
    ];
    let heading = [
        "commands a second",
        "graph s",
        "meanwhile %",
        "s below 90 %",
        "worst tenth of a second %",
        "afterwards %",
    ];
    Ok(format!("redis with {keys} keys, under load.\n\n{}", markdown(&heading, &[row])))
}

/// Returns the server's commands per second, at each reading, while `goes_on` returns true.
fn watch(mut goes_on: impl FnMut(Instant) -> bool) -> anyhow::Result<Vec<f64>> {
    let begin = Instant::now();
    let (mut speeds, mut last) = (Vec::new(), (commands()?, Instant::now()));
    while goes_on(begin) {
        std::thread::sleep(TICK);
        let now = (commands()?, Instant::now());
        speeds.push((now.0 - last.0) / (now.1 - last.1).as_secs_f64());
        last = now;
    }
    Ok(speeds)
}

fn commands() -> anyhow::Result<f64> {
    let text = crate::output_of(Command::new("redis-cli").args(["-p", PORT, "info", "stats"]))?;
    let count = text.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    Ok(count.context("redis says nothing")?.trim().parse()?)
}

fn analysis() -> anyhow::Result<String> {
    release(&["heapr-native", "--example", "graph_speed"])?;
    let speed = crate::check_agent::target_folder()?.join("release/examples/graph_speed");
    Ok(format!(
        "Ten million blocks, thirty million edges.\n\n```\n{}```",
        crate::output_of(&mut Command::new(Path::new(&speed)))?
    ))
}

fn questions() -> anyhow::Result<String> {
    let heapr = crate::soak_graph_kills::heapr()?;
    let blocks = std::env::var("HEAPR_BLOCKS").unwrap_or_else(|_| "10000000".to_owned());
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("planted");
    let source = crate::root().join("victims/graph/planted.c");
    crate::run(Command::new("gcc").args(["-O1", "-g", "-fno-builtin", "-o"]).arg(&program).arg(source))?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&heapr);
        command.args(arguments).current_dir(folder.path());
        for variable in ["HEAPR_RUNTIME_DIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
            command.env(variable, folder.path());
        }
        command
    };
    let (said, taken) = (folder.path().join("said"), "q.heapr");
    let mut start = command(&["start", "q", "-q", "-o", taken, "--", "./planted", &blocks, "/dev/null"]);
    crate::run(start.stdout(std::fs::File::create(&said)?))?;
    let deadline = Instant::now() + READY_LIMIT;
    let pid = loop {
        let text = std::fs::read_to_string(&said)?;
        if let Some(pid) = text.strip_prefix("ready ").and_then(|rest| rest.strip_suffix('\n')) {
            break pid.to_owned();
        }
        ensure!(Instant::now() < deadline, "the program is not ready");
        std::thread::sleep(TICK);
    };
    let longest = READY_LIMIT.as_millis().to_string();
    let taking =
        crate::run(&mut command(&["snapshot", "take", "-q", "--graph", "--max-pause", &longest, &pid]));
    crate::run(&mut command(&["stop", "q", "-q"]))?;
    crate::run(Command::new("kill").arg(&pid))?;
    taking?;
    let seconds = |verb: &str| -> anyhow::Result<String> {
        let began = Instant::now();
        crate::output_of(&mut command(&["snapshot", verb, taken]))?;
        Ok(format!("{:.2}", began.elapsed().as_secs_f64()))
    };
    let mut rows = Vec::new();
    for verb in ["leaks", "holders", "dominators"] {
        rows.push(vec![verb.to_owned(), seconds(verb)?, seconds(verb)?]);
    }
    let bytes_of = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len());
    let kept = std::fs::read_dir(folder.path().join("heapr/snapshots"))?.flatten();
    let kept: Vec<String> = kept
        .map(|entry| format!("{} {} bytes", entry.file_name().to_string_lossy(), bytes_of(&entry.path())))
        .collect();
    Ok(format!(
        "{blocks} blocks in lists, trees, tables, diamonds and circles; the file has {} bytes; kept beside it: {}.\n\n{}",
        bytes_of(&folder.path().join(taken)),
        kept.join(", "),
        markdown(&["question", "first s", "second s"], &rows)
    ))
}
