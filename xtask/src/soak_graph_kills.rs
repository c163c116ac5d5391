//! Captures graphs of working programs, and kills every other capture at a random moment, from
//! before the attach to after the detach. The programs must be unchanged, with no child, copy,
//! descriptor or mapping left.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::soak_attach::{Program, start};

/// Default number of graphs per program; half of the captures are killed.
const ROUNDS: u32 = 200;
/// Number of tries. A program that allocates or loads libraries all the time may have no suitable
/// moment on a busy machine.
const TRIES: u32 = 20;
/// Longest time until all remains are gone.
const LIMIT: Duration = Duration::from_secs(20);
/// Programs, and whether their open files and mappings stay the same.
const PROGRAMS: [(&str, bool); 7] = [
    ("threads", true),
    ("python", true),
    ("modules", true),
    ("redis", false),
    ("node", false),
    ("plugins", false),
    ("forks", false),
];

/// Runs the requested number of rounds on each program.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let rounds = match arguments {
        [] => ROUNDS,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of rounds"))?,
    };
    let only: Option<&str> = arguments.get(1).copied();
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
    let heapr = heapr()?;
    let mut seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64) | 1;
    for (name, is_steady) in PROGRAMS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let stage = Stage { heapr: &heapr, folder: folder.path() };
        let program = start(name, &[])?;
        stage.kill_often(name, &program, is_steady, rounds, &mut seed).with_context(|| name.to_owned())?;
        println!("soak graph-kills: {name}: {rounds} graphs, every other one killed, nothing was left");
    }
    Ok(())
}

/// Watches blocks that were reported as leaked: `benches/graph_confirm.sh`.
pub(crate) fn confirm(arguments: &[&str]) -> anyhow::Result<()> {
    let script = crate::root().join("benches/graph_confirm.sh");
    crate::run(Command::new("sh").arg(script).args(arguments).env("HEAPR", heapr()?))
}

/// Returns the program that `HEAPR` names, or else builds one.
pub(crate) fn heapr() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("HEAPR") {
        return Ok(fs::canonicalize(path)?);
    }
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p", "heapr"]))?;
    Ok(crate::check_agent::target_folder()?.join("release/heapr"))
}

struct Stage<'a> {
    heapr: &'a Path,
    folder: &'a Path,
}

impl Stage<'_> {
    fn kill_often(
        &self,
        name: &str,
        program: &Program,
        is_steady: bool,
        rounds: u32,
        seed: &mut u64,
    ) -> anyhow::Result<()> {
        let pid = program.pid;
        // Files that the program opens at its start are closed once it works.
        ensure!((0..10).any(|_| program.speed(Duration::from_secs(1)) > 0.0), "it does nothing");
        let before = Traces::of(pid)?;
        let mut whole = Duration::ZERO;
        let taken = (0..TRIES).any(|_| {
            let begin = Instant::now();
            let is_taken = self.is_taken(pid);
            whole = begin.elapsed();
            is_taken
        });
        ensure!(taken, "no graph can be taken of it: {}", self.said());
        let mappings = named_mappings(pid)?;
        let (mut refused_count, mut refused) = (0, String::new());
        for round in 1..=rounds {
            let mut taking = self.take(pid)?;
            if round % 2 == 0 {
                if !taking.wait()?.success() {
                    refused_count += 1;
                    refused = self.said();
                }
                self.wait_until_unmarked(pid, &before, is_steady)
                    .with_context(|| format!("round {round}: {}", self.said()))?;
                continue;
            }
            *seed ^= *seed << 13;
            *seed ^= *seed >> 7;
            *seed ^= *seed << 17;
            let delay = whole * u32::try_from(*seed % 1050)? / 1000;
            std::thread::sleep(delay);
            let _ = taking.kill();
            taking.wait()?;
            self.wait_until_unmarked(pid, &before, is_steady)
                .with_context(|| format!("round {round}, killed after {delay:?} of {whole:?}"))?;
        }
        if refused_count > 0 {
            println!("  {name}: {refused_count} of {} had no graph: {}", rounds / 2, refused.trim());
        }
        // The memory of a killed attach is removed by the next one.
        ensure!(
            (0..TRIES).any(|_| self.is_taken(pid)),
            "no graph can be taken of it any more: {}",
            self.said()
        );
        let after = Traces::of(pid)?;
        let new: Vec<_> = named_mappings(pid)?.difference(&mappings).cloned().collect();
        ensure!(!is_steady || new.is_empty(), "mapped, and not before: {new:?}");
        let own = |name: &&String| name.contains("heapr");
        ensure!(!new.iter().any(|name| own(&name)), "mapped, and not before: {new:?}");
        ensure!(
            !is_steady || after.code_mapping_count == before.code_mapping_count,
            "{} mappings of code without a file, before {}",
            after.code_mapping_count,
            before.code_mapping_count
        );
        let works = (0..10).any(|_| program.speed(Duration::from_secs(2)) > 0.0);
        ensure!(works, "it does nothing any more");
        Ok(())
    }

    fn is_taken(&self, pid: u32) -> bool {
        self.take(pid).and_then(|mut taking| Ok(taking.wait()?.success())).unwrap_or(false)
    }

    fn take(&self, pid: u32) -> anyhow::Result<std::process::Child> {
        // Beside 64 threads that never rest the capture would rarely get a processor: 9 s per
        // graph, with this priority 1.4. Without the right to it `nice` only warns; the pid is
        // heapr's.
        let mut command = Command::new("nice");
        command
            .args(["-n", "-20"])
            .arg(self.heapr)
            .args(["snapshot", "take", "--graph", "-q", "--native", "--force", "-o"]);
        command.arg(self.folder.join("graph.heapr")).arg(pid.to_string());
        command.env("HEAPR_RUNTIME_DIR", self.folder).env("XDG_RUNTIME_DIR", self.folder);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.folder.join("said"))?);
        command.spawn().context("heapr")
    }

    /// Returns the messages of the last capture.
    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    /// Waits until all remains are gone: the kernel takes a while to clean up after a killed
    /// process. Only children and copies that stay count, because a program may make some of its
    /// own.
    fn wait_until_unmarked(&self, pid: u32, before: &Traces, is_steady: bool) -> anyhow::Result<()> {
        let begin = Instant::now();
        let mut left_all_along: Option<(BTreeSet<String>, BTreeSet<u32>)> = None;
        loop {
            let mut now = Traces::of(pid)?;
            if let Some((children, copies)) = left_all_along {
                now.children.retain(|child| children.contains(child));
                now.copies.retain(|copy| copies.contains(copy));
            }
            let Some(left) = now.left_since(before, is_steady) else { return Ok(()) };
            if begin.elapsed() > LIMIT {
                bail!("{left}");
            }
            left_all_along = Some((now.children, now.copies));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Possible remains in a process after a capture.
struct Traces {
    children: BTreeSet<String>,
    /// Other processes of the same program.
    copies: BTreeSet<u32>,
    descriptor_count: usize,
    has_own_descriptor: bool,
    is_held: bool,
    /// True if a thread has another scheduling policy than the default.
    is_urgent: bool,
    code_mapping_count: usize,
}

impl Traces {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(folder.join("status")).context("it has ended")?;
        ensure!(!status.contains("State:\tZ"), "it has ended");
        let exe = fs::read_link(folder.join("exe")).context("it has ended")?;
        let words = fs::read(folder.join("cmdline")).context("it has ended")?;
        let threads: Vec<PathBuf> =
            fs::read_dir(folder.join("task"))?.flatten().map(|entry| entry.path()).collect();
        let texts = |name: &str| -> Vec<String> {
            threads.iter().filter_map(|thread| fs::read_to_string(thread.join(name)).ok()).collect()
        };
        let children = texts("children");
        let children = children.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned);
        let is_held = texts("status").iter().any(|text| {
            !text.contains("TracerPid:\t0\n") || text.contains("State:\tt") || text.contains("State:\tT")
        });
        // Fields behind the name: the policy is the 41st word of the line.
        let policy = |line: &String| line.rsplit(')').next()?.split_whitespace().nth(38).map(str::to_owned);
        let is_urgent = texts("stat").iter().filter_map(policy).any(|policy| policy != "0");
        let numbers = fs::read_dir("/proc")?.flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_copy = |&other: &u32| {
            other != pid
                && fs::read_link(format!("/proc/{other}/exe")).is_ok_and(|other| other == exe)
                && fs::read(format!("/proc/{other}/cmdline")).is_ok_and(|other| other == words)
        };
        let descriptors: Vec<PathBuf> = fs::read_dir(folder.join("fd"))?
            .flatten()
            .map(|entry| fs::read_link(entry.path()).unwrap_or_default())
            .collect();
        let maps = fs::read_to_string(folder.join("maps"))?;
        let is_bare_code =
            |line: &&str| line.contains(" r-xp ") && line.split_whitespace().nth(4) == Some("0");
        Ok(Self {
            children: children.collect(),
            copies: numbers.filter(is_copy).collect(),
            descriptor_count: descriptors.len(),
            has_own_descriptor: descriptors.iter().any(|link| link.to_string_lossy().contains("heapr")),
            is_held,
            is_urgent,
            code_mapping_count: maps.lines().filter(is_bare_code).count(),
        })
    }

    /// Describes what exists at this moment and did not exist before.
    fn left_since(&self, before: &Self, is_steady: bool) -> Option<String> {
        if self.is_held {
            return Some("a thread stands still or is traced".to_owned());
        }
        if self.is_urgent && !before.is_urgent {
            return Some("a thread goes before all others".to_owned());
        }
        let children: Vec<_> = self.children.difference(&before.children).collect();
        let copies: Vec<_> = self.copies.difference(&before.copies).collect();
        let is_same = self.descriptor_count <= before.descriptor_count || !is_steady;
        if children.is_empty() && copies.is_empty() && is_same && !self.has_own_descriptor {
            return None;
        }
        Some(format!(
            "left: children {children:?}, copies {copies:?}, {} descriptors, before {}",
            self.descriptor_count, before.descriptor_count
        ))
    }
}

/// Returns mapped files and named memory, without the anonymous heaps, which change.
fn named_mappings(pid: u32) -> anyhow::Result<BTreeSet<String>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(maps.lines().filter_map(|line| line.split_whitespace().nth(5)).map(str::to_owned).collect())
}
