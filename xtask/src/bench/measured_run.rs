//! Measures one command's wall time, CPU time over its whole tree, and peak memory.
//!
//! The kernel adds up the CPU time of all children that a process has waited for. So a separate
//! process (`xtask measure`) starts the command, waits, and writes the numbers to a file. Only one
//! command is then in the sum.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::resource::{UsageWho, getrusage};

use super::spread::Spread;

/// Variable that names what is preloaded into the command, and not into the measuring process.
/// Running `env` for that would add one program, a millisecond to the shortest program's thirty.
pub(crate) const MEASURED_PRELOAD: &str = "MEASURED_PRELOAD";

/// Cost of one run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Seconds from start to end.
    pub(crate) wall_s: f64,
    /// Seconds of user and system time over the whole tree.
    pub(crate) cpu_s: f64,
    /// Largest resident set of one process of the tree.
    pub(crate) peak_rss_kib: u64,
}

/// Runs the command of `xtask measure RESULT COMMAND…` and writes its cost to RESULT.
pub(crate) fn measure(result: &str, command: &[&str]) -> anyhow::Result<()> {
    let [program, arguments @ ..] = command else { bail!("no command to measure") };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(preloaded) = std::env::var_os(MEASURED_PRELOAD) {
        command.env("LD_PRELOAD", preloaded);
    }
    let begin = Instant::now();
    let status = command.status().with_context(|| (*program).to_owned())?;
    let wall_s = begin.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
    std::fs::write(result, format!("{wall_s} {cpu_s} {} {}", usage.max_rss(), status.code().unwrap_or(-1)))
        .with_context(|| result.to_owned())
}

/// Command that runs under measurement.
#[derive(Debug)]
pub(crate) struct MeasuredRun {
    child: Child,
    result: tempfile::NamedTempFile,
    shown: String,
}

impl MeasuredRun {
    /// Starts the command; its output goes to `log`.
    pub(crate) fn start(
        command: &[String],
        environment: &BTreeMap<String, String>,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let result = tempfile::NamedTempFile::new()?;
        let mut measuring = Command::new(std::env::current_exe()?);
        measuring.arg("measure").arg(result.path()).args(command).envs(environment);
        measuring
            .stdin(Stdio::null())
            .stdout(File::create(log)?)
            .stderr(File::options().append(true).open(log)?);
        let shown = command.join(" ");
        Ok(Self { child: measuring.spawn().with_context(|| shown.clone())?, result, shown })
    }

    /// Waits for the end; an error if the command fails or takes more than ten minutes.
    pub(crate) fn finish(mut self) -> anyhow::Result<Cost> {
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > Duration::from_secs(600) {
                self.child.kill()?;
                bail!("{} has not ended after ten minutes", self.shown);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = std::fs::read_to_string(self.result.path())?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [wall_s, cpu_s, rss, 0.0] => Ok(Cost { wall_s, cpu_s, peak_rss_kib: rss as u64 }),
            [.., status] => bail!("{}: status {status}", self.shown),
            _ => bail!("{} could not be measured", self.shown),
        }
    }
}

/// Returns the median of each number.
pub(crate) fn median(costs: &[Cost]) -> Cost {
    let middle = |number: fn(&Cost) -> f64| Spread::of(costs.iter().map(number)).median;
    Cost {
        wall_s: middle(|cost| cost.wall_s),
        cpu_s: middle(|cost| cost.cpu_s),
        peak_rss_kib: middle(|cost| cost.peak_rss_kib as f64) as u64,
    }
}
