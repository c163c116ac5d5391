//! Kills recorder, command line or program at random moments. After each kill the program must be
//! unharmed, the file must open, and the next session must start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// Default number of rounds.
const ROUNDS: u32 = 100;
/// Least time within which a start is killed, and a session.
const START: Duration = Duration::from_millis(60);
const SESSION: Duration = Duration::from_millis(400);
/// Rounds between two lines that tell how far it is.
const PROGRESS_ROUNDS: u32 = 20;
/// Longest time until a program ends that was not killed and was told to end.
const LIMIT: Duration = Duration::from_secs(60);
/// Exit status by which the program reports success.
const RIGHT_END: i32 = 7;

/// Process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    /// Recorder; for `run` it is the command itself.
    Recorder,
    /// Traced program.
    Program,
    /// `heapr start`, while it starts.
    Starter,
    /// `heapr stop`, while it waits.
    Stopper,
}

/// Method by which the program is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Run,
    Start,
    Attach,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Runs the requested number of rounds.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let rounds = match arguments {
        [] => ROUNDS,
        [count, ..] => count.parse().with_context(|| format!("{count} is no number of rounds"))?,
    };
    let seed = match arguments {
        [_, seed] => seed.parse().with_context(|| format!("{seed} is no seed"))?,
        _ => std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64) | 1,
    };
    let stage = Stage::new()?;
    println!("soak kills: {rounds} rounds, seed {seed}");
    let mut random = Random(seed);
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for round in 0..rounds {
        let way = random.of(&[Way::Run, Way::Start, Way::Attach]);
        let killed = match way {
            Way::Run => random.of(&[Killed::Recorder, Killed::Program]),
            _ => random.of(&[Killed::Recorder, Killed::Program, Killed::Starter, Killed::Stopper]),
        };
        let delay_max = if killed == Killed::Starter { START } else { SESSION }.max(2 * stage.start);
        let delay = Duration::from_micros(random.below(delay_max.as_micros() as u64));
        let rest_us = random.of(&[0, 0, 200]);
        stage.round(way, killed, delay, rest_us).with_context(|| {
            format!("round {round}: {way:?}, {killed:?} killed after {delay:?}, rest {rest_us}")
        })?;
        *counts.entry(format!("{way:?}, {killed:?}")).or_default() += 1;
        if (round + 1).is_multiple_of(PROGRESS_ROUNDS) {
            println!("soak kills: {} rounds", round + 1);
        }
    }
    for (what, count) in counts {
        println!("  {count:>4}  {what}");
    }
    println!("soak kills: no program harmed, all files open, all names free");
    Ok(())
}

/// The program to try: `HEAPR`, or a release build.
fn heapr() -> anyhow::Result<PathBuf> {
    if let Some(program) = std::env::var_os("HEAPR") {
        return Ok(program.into());
    }
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p", "heapr"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    Ok(target.join("release/heapr"))
}

struct Stage {
    folder: tempfile::TempDir,
    heapr: PathBuf,
    program: PathBuf,
    /// About as long as a session's start takes: a slow machine is still starting when a quick one
    /// is at work.
    start: Duration,
}

impl Stage {
    fn new() -> anyhow::Result<Self> {
        let heapr = heapr()?;
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let program = folder.path().join("steady");
        let source = crate::root().join("crates/heapr/tests/sessions/steady.c");
        crate::run(Command::new("gcc").args(["-g", "-O1", "-fno-builtin", "-o"]).arg(&program).arg(source))?;
        let mut stage = Self { folder, heapr, program, start: Duration::ZERO };
        let began = Instant::now();
        // Three commands.
        stage.check_free()?;
        stage.start = began.elapsed() / 3;
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn heapr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.heapr);
        command
            .args(arguments)
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn output(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new("timeout");
        command.arg("60").arg(&self.heapr).args(arguments);
        command
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().context("timeout")
    }

    fn round(&self, way: Way, killed: Killed, delay: Duration, rest_us: u32) -> anyhow::Result<()> {
        let (release, file) = (self.path("release"), self.path("trace.heapr"));
        for old in [&release, &file] {
            let _ = fs::remove_file(old);
        }
        let words = [
            self.program.to_string_lossy().into_owned(),
            release.to_string_lossy().into_owned(),
            rest_us.to_string(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut own_program = None;
        let common = ["-q", "-o", "trace.heapr", "--flush-timer", "0.02", "--max-buffers", "64"];
        let mut command = match way {
            Way::Run => self.heapr(&[&["run"], &common[..], &["--"], &words].concat()),
            Way::Start => self.heapr(&[&["start", "soak"], &common[..], &["--"], &words].concat()),
            Way::Attach => {
                let program = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).spawn()?;
                std::thread::sleep(Duration::from_millis(30));
                let pid = program.id().to_string();
                own_program = Some(program);
                self.heapr(&[&["start", "soak", "--pid", &pid], &common[..]].concat())
            }
        };
        let mut first = command.spawn()?;
        let begins_whole = way != Way::Run && killed != Killed::Starter;
        if begins_whole {
            ensure!(first.wait()?.success(), "the session did not start");
        }
        std::thread::sleep(delay);
        let recorder = if way == Way::Run { Some(first.id()) } else { self.recorder()? };
        let program = match &own_program {
            Some(program) => Some(program.id()),
            None => self.find_program(),
        };
        match killed {
            Killed::Recorder => kill(recorder),
            Killed::Program => kill(program),
            Killed::Starter => kill(Some(first.id())),
            Killed::Stopper => {
                let mut stop = self.heapr(&["stop", "soak", "-q"]).spawn()?;
                std::thread::sleep(delay / 40);
                let _ = stop.kill();
                stop.wait()?;
            }
        }
        fs::write(&release, "")?;
        self.check_ends(first, own_program.as_mut(), program, killed == Killed::Program)?;
        self.check_file(&file)?;
        self.check_free()
    }

    /// Checks that every process that was not killed ends correctly.
    fn check_ends(
        &self,
        first: Child,
        own_program: Option<&mut Child>,
        program: Option<u32>,
        is_program_killed: bool,
    ) -> anyhow::Result<()> {
        if let Some(own) = own_program {
            let code = wait(own).context("the program hangs")?.code();
            ensure!(is_program_killed || code == Some(RIGHT_END), "the program ended with {code:?}");
        } else if let Some(program) = program {
            let started = Instant::now();
            while lives(program) {
                ensure!(started.elapsed() < LIMIT, "the program hangs");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let mut first = first;
        wait(&mut first).context("the command hangs")?;
        Ok(())
    }

    fn check_file(&self, file: &Path) -> anyhow::Result<()> {
        let Ok(facts) = fs::metadata(file) else { return Ok(()) };
        // Killed between the creation of the file and its first bytes.
        if facts.len() == 0 {
            return Ok(());
        }
        // A session that continues is still writing; its file opens all the same.
        for arguments in [&["info", "trace.heapr"][..], &["report", "trace.heapr", "--totals"]] {
            let output = self.output(arguments)?;
            // A recorder whose start was not reported removes its file again, maybe at this moment.
            if !file.exists() {
                return Ok(());
            }
            if output.status.code() != Some(0) {
                bail!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        Ok(())
    }

    /// Cancels what still runs; then the name must be free, and a session of that name must record.
    fn check_free(&self) -> anyhow::Result<()> {
        // A recorder whose starter was killed decides by itself whether it continues: it may still
        // be about to begin.
        let started = Instant::now();
        loop {
            let _: Output = self.output(&["cancel", "soak"])?;
            let next = self.output(&["start", "soak", "-q", "-f", "-o", "next.heapr", "--", "/bin/true"])?;
            if next.status.success() {
                break;
            }
            let said = String::from_utf8_lossy(&next.stderr).into_owned();
            let limit = Duration::from_secs(5).max(10 * self.start);
            ensure!(started.elapsed() < limit, "the next session does not start: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let stopped = self.output(&["stop", "soak", "-q"])?;
        ensure!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
        let left: Vec<String> = fs::read_dir(self.path("heapr"))?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with("heapr-agent"))
            .collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
        Ok(())
    }

    /// Process id of the session's recorder.
    fn recorder(&self) -> anyhow::Result<Option<u32>> {
        let status = self.output(&["status", "soak", "--format", "json"])?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        Ok(status["sessions"][0]["recorder_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()))
    }

    /// Returns the running program of this stage.
    fn find_program(&self) -> Option<u32> {
        let processes = fs::read_dir("/proc").ok()?;
        let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut pids =
            pids.filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.program));
        pids.next()
    }
}

fn kill(pid: Option<u32>) {
    if let Some(pid) = pid {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    }
}

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn wait(child: &mut Child) -> anyhow::Result<std::process::ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            bail!("not done after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
