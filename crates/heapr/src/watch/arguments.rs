//! Arguments of `heapr watch`.

use std::path::PathBuf;
use std::time::Duration;

use heapr_filters::quantity::{parse_bytes, parse_duration_ns};
use heapr_incident::{Bounds, Rules};
use heapr_session::SampleRate;

use crate::incidents::default_folder;
use crate::run::record_arguments::parse_sample_rate;

/// Arguments of `heapr watch`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("targets").required(true).multiple(true).args(["pids", "groups", "units", "containers", "flagged"]))]
pub(crate) struct WatchArguments {
    /// Processes to watch, by number or by the name of their program, with those that they start
    #[arg(short, long = "pid", value_name = "PID|NAME", value_delimiter = ',')]
    pub(super) pids: Vec<String>,
    /// Control group and those below it, from the hierarchy's root
    #[arg(long = "cgroup", value_name = "PATH")]
    pub(super) groups: Vec<String>,
    /// Systemd unit
    #[arg(long = "unit", value_name = "UNIT")]
    pub(super) units: Vec<String>,
    /// All containers of this machine: the groups of Kubernetes, Docker, containerd and podman
    #[arg(long)]
    pub(super) containers: bool,
    /// Flagged programs, from their start on (see `heapr config`)
    #[arg(long)]
    pub(super) flagged: bool,
    /// Folder of the incidents [default: heapr/incidents in $XDG_STATE_HOME (~/.local/state)]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(super) output: Option<PathBuf>,
    /// Share of its limit at which a group is told before a kill, without files that the kernel can
    /// take back
    #[arg(long, value_name = "PERCENT", default_value = "85", value_parser = parse_percent)]
    at_limit: u64,
    /// Tell a group whose trend reaches its limit within so many minutes; 0: never
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    within: u64,
    /// Tell each rise of the resident memory by SIZE (1M or more), also without a limit
    #[arg(long, value_name = "SIZE", value_parser = parse_step)]
    rss_step: Option<u64>,
    /// Tell a group of which further memory is swapped out, by steps of this share of its limit; 0:
    /// never
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = parse_percent_or_0)]
    at_swap: u64,
    /// Record all allocations for so long after such a warning, of all watched processes [default:
    /// never]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    full_for: Option<u64>,
    /// Largest number of incidents; the oldest are removed
    #[arg(long, value_name = "N", default_value_t = 100)]
    keep: u32,
    /// Largest size of all incidents with their recordings
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    keep_size: u64,
    /// Largest age of an incident
    #[arg(long, value_name = "TIME", default_value = "720h", value_parser = parse_duration_ns)]
    keep_age: u64,
    /// Record a sample of the allocations, as `heapr start` does
    #[arg(long, value_name = "SIZE|auto|off|all", default_value = "auto", value_parser = parse_sample_rate)]
    pub(super) sample: SampleRate,
    /// Also look at the objects of Python as a process grows, while its group has room for a copy.
    /// The process stands still for milliseconds
    #[arg(long)]
    pub(super) graph: bool,
    /// Send each incident as JSON to this address by POST (https is spoken by the program curl)
    #[arg(long, value_name = "URL")]
    pub(super) webhook: Option<String>,
    /// Send each incident as a record of OTLP logs to this address, with /v1/logs behind it
    #[arg(long, value_name = "URL")]
    pub(super) otlp: Option<String>,
    /// End when all watched processes have ended; with status 1 if one of them died
    #[arg(long)]
    pub(super) until_end: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
}

impl WatchArguments {
    /// Folder of the incidents.
    pub(super) fn folder(&self) -> anyhow::Result<PathBuf> {
        match &self.output {
            Some(folder) => Ok(std::path::absolute(folder)?),
            None => default_folder(),
        }
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            limit_percent: self.at_limit,
            within_minutes: self.within,
            rss_step_bytes: self.rss_step,
            swap_percent: self.at_swap,
        }
    }

    /// Time for which all is recorded after a warning.
    pub(super) fn full_for(&self) -> Option<Duration> {
        self.full_for.filter(|&time| time > 0).map(Duration::from_nanos)
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            count: self.keep.max(1) as usize,
            bytes: self.keep_size,
            age: Duration::from_nanos(self.keep_age),
        }
    }
}

/// Parses a step. Each step is an incident: smaller ones would come with each reading.
fn parse_step(text: &str) -> anyhow::Result<u64> {
    const BYTES_MIN: u64 = 1 << 20;
    let bytes = parse_bytes(text)?;
    anyhow::ensure!(bytes >= BYTES_MIN, "{text}: a step is at least 1M");
    Ok(bytes)
}

fn parse_percent_or_0(text: &str) -> Result<u64, String> {
    if text.trim() == "0" { Ok(0) } else { parse_percent(text) }
}

fn parse_percent(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| format!("{text}: a percentage from 1 to 100"))
}
