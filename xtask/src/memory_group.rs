//! Control groups of little memory, of the version that the machine has, and watches of them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Roots of the two versions' hierarchies, and the file of the limit.
const ROOTS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// Longest times until a watch watches, and until it has ended: an emulated machine is slow.
const BEGIN_MAX: Duration = Duration::from_secs(300);
const END_MAX: Duration = Duration::from_secs(300);

/// Control group with a limit. It is removed, with its processes, where it is dropped.
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    limit_file: &'static str,
    /// Path from the hierarchy's root.
    pub(crate) path: String,
}

impl MemoryGroup {
    /// Makes a group below `above`, or below the root.
    pub(crate) fn new(name: &str, above: Option<&Self>, limit_mib: Option<u64>) -> anyhow::Result<Self> {
        let (root, limit_file) = ROOTS
            .into_iter()
            .find(|(root, _)| {
                let controllers = fs::read_to_string(Path::new(root).join("cgroup.controllers"));
                Path::new(root).join("memory.limit_in_bytes").exists()
                    || controllers.is_ok_and(|names| names.contains("memory"))
            })
            .context("no control group counts memory here")?;
        let parent = above.map_or_else(|| PathBuf::from(root), |above| above.folder.clone());
        // Version 2 has the controller in groups below one that hands it on.
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
        let name = format!("heapr-{name}-{}", std::process::id());
        let folder = parent.join(&name);
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let path = format!("/{}", folder.strip_prefix(root)?.display());
        let group = Self { folder, limit_file, path };
        for (file, value) in [("memory.swap.max", "0"), ("memory.swappiness", "0")] {
            let _ = fs::write(group.folder.join(file), value);
        }
        if let Some(mib) = limit_mib {
            group.limit(mib << 20)?;
        }
        Ok(group)
    }

    /// Sets the limit in bytes.
    pub(crate) fn limit(&self, bytes: u64) -> anyhow::Result<()> {
        let file = self.folder.join(self.limit_file);
        fs::write(&file, bytes.to_string()).with_context(|| file.display().to_string())
    }

    /// Bytes that count against the limit, without pages of files.
    pub(crate) fn held_bytes(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let usage = number(&read("memory.usage_in_bytes")).or_else(|| number(&read("memory.current")));
        let stat = read("memory.stat");
        let of = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(number)
        };
        let file = of("total_cache").or_else(|| of("file")).unwrap_or(0);
        let shared = of("total_shmem").or_else(|| of("shmem")).unwrap_or(0);
        usage.unwrap_or(0).saturating_sub(file.saturating_sub(shared))
    }

    /// Number of processes that the kernel has killed in the group for lack of memory.
    pub(crate) fn kill_count(&self) -> u64 {
        let files = ["memory.oom_control", "memory.events"].map(|name| self.folder.join(name));
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        let count =
            |text: String| text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        texts.filter_map(count).next().unwrap_or(0)
    }

    /// Command that runs a program in the group.
    pub(crate) fn command(&self, words: &[String], folder: &Path) -> Command {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(words).current_dir(folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Waits until the programs of the group have started: they wait, and use little of a
    /// processor. An interpreter takes seconds to load on a slow machine.
    pub(crate) fn wait_until_loaded(&self) {
        const LOOK: Duration = Duration::from_millis(350);
        let started = Instant::now();
        let mut before = self.run_ns();
        while started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(LOOK);
            let now = self.run_ns();
            // One that has ended has run for less than before.
            if now.saturating_sub(before) * 3 < LOOK.as_nanos() as u64 && started.elapsed() > LOOK * 2 {
                return;
            }
            before = now;
        }
    }

    /// Time in ns for which the first threads of the group's processes have run.
    fn run_ns(&self) -> u64 {
        let pids = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        let of_one = |pid: &str| {
            let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
        };
        pids.lines().map(of_one).sum()
    }

    /// Number of processes in the group.
    pub(crate) fn process_count(&self) -> usize {
        fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines().count()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let started = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && started.elapsed() < Duration::from_secs(10) {
            for pid in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
                let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Watch that runs. It ends where it is dropped.
pub(crate) struct Watch(Child);

impl Watch {
    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends the watch in order, by SIGTERM: its recorder ends with it.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        ensure!(self.told_to_end(), "the watch does not end when it is told to");
        Ok(())
    }

    fn told_to_end(&mut self) -> bool {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).stderr(Stdio::null()).status();
        waited(END_MAX, || Ok(self.0.try_wait()?.is_some())).unwrap_or(false)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) && !self.told_to_end() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Path of the program that is judged: the variable `HEAPR`, or the release build.
pub(crate) fn heapr() -> PathBuf {
    std::env::var_os("HEAPR").map_or_else(|| crate::root().join("target/release/heapr"), PathBuf::from)
}

/// Folder of one trial with its own runtime folder and incidents.
pub(crate) struct Trial {
    pub(crate) folder: tempfile::TempDir,
}

impl Trial {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Command of heapr with this trial's folders.
    pub(crate) fn heapr(&self, words: &[&str]) -> Command {
        let mut command = Command::new(heapr());
        command
            .args(words)
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts a watch, and waits until it watches.
    pub(crate) fn watch(&self, words: &[&str]) -> anyhow::Result<Watch> {
        let said = self.path("said");
        let mut command = self.heapr(&["watch", "-o", "incidents"]);
        command.args(words).stdout(Stdio::null()).stderr(File::create(&said)?);
        let mut watch = Watch(command.spawn().context("heapr watch")?);
        let started = Instant::now();
        loop {
            let text = fs::read_to_string(&said)?;
            if text.contains("heapr: watching") {
                return Ok(watch);
            }
            ensure!(started.elapsed() < BEGIN_MAX, "the watch does not begin: {text}");
            if let Some(status) = watch.0.try_wait()? {
                bail!("the watch ended ({status}): {text}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// All incidents, oldest first.
    pub(crate) fn incidents(&self) -> anyhow::Result<Vec<Value>> {
        let list = self.json(&["incidents", "--folder", "incidents"])?;
        let numbers = list["incidents"].as_array().into_iter().flatten();
        let read =
            numbers.map(|one| self.json(&["incidents", &one["number"].to_string(), "--folder", "incidents"]));
        // A warning gives way to the death that follows it, maybe at this moment.
        Ok(read.filter_map(Result::ok).collect())
    }

    /// Incident of a number.
    pub(crate) fn incident(&self, number: u32) -> anyhow::Result<Value> {
        self.json(&["incidents", &number.to_string(), "--folder", "incidents"])
    }

    /// Numbers of the deaths among the incidents, oldest first. Warnings give way to deaths.
    pub(crate) fn deaths(&self) -> anyhow::Result<Vec<u32>> {
        let list = self.json(&["incidents", "--folder", "incidents"])?;
        let rows = list["incidents"].as_array().into_iter().flatten();
        let deaths = rows.filter(|row| row["kind"] == "death");
        Ok(deaths.filter_map(|row| row["number"].as_u64()?.try_into().ok()).collect())
    }

    fn json(&self, words: &[&str]) -> anyhow::Result<Value> {
        let output = crate::output_of(self.heapr(words).args(["--format", "json"]))?;
        serde_json::from_str(&output).with_context(|| format!("{words:?}"))
    }
}

/// Waits until `done`; false after the time.
pub(crate) fn waited(
    limit: Duration,
    mut done: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    let started = Instant::now();
    while !done()? {
        if started.elapsed() > limit {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}
