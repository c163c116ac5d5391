//! Options of a recording, shared by all commands that record.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use heapr_session::{
    AUTO_PER_SECOND, FullOnGrowth, LoggingMode, OnFull, Rotation, SampleRate, SessionProperties, StackEvents,
};

use heapr_filters::quantity::{parse_bytes, parse_duration_ns, parse_seconds};

/// Environment variable N: every Nth stack is also unwound in full and compared.
const VERIFY_VARIABLE: &str = "HEAPR_VERIFY";

/// Options of a recording.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArguments {
    /// Size of a buffer in KiB: a power of two from 4 to 1024
    #[arg(long, value_name = "KB", default_value_t = 64, alias = "buffersize")]
    buffer_size: usize,
    /// Buffers that are there from the start
    #[arg(long, value_name = "N", default_value_t = 16, alias = "minbuffers")]
    min_buffers: usize,
    /// Most buffers
    #[arg(long, value_name = "N", default_value_t = 1024, alias = "maxbuffers")]
    max_buffers: usize,
    /// Seconds between two states of the file that survive a crash
    #[arg(long, value_name = "S", default_value = "1", alias = "flushtimer", value_parser = parse_seconds)]
    flush_timer: Duration,
    /// Treatment of an event when no buffer is free
    #[arg(long, value_enum, default_value_t = OnFullArgument::Block)]
    on_full: OnFullArgument,
    /// Which events carry stacks: some of create,alloc,realloc,free,destroy, or none
    #[arg(long = "stack-events", value_name = "EVENTS", default_value = "create,alloc,realloc", aliases = ["stacks", "stackwalk"], value_parser = parse_stacks)]
    stacks: StackEvents,
    /// Frames kept of a stack, innermost first; 0: all
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_frames: u32,
    /// Record mmap, munmap, mremap and mprotect as a second heap; what is only reserved (PROT_NONE,
    /// MAP_NORESERVE) is not live
    #[arg(long)]
    mmap: bool,
    /// Look inside of programs for the allocators in this file, too (docs/allocators.md)
    #[arg(long, value_name = "FILE")]
    allocator: Vec<PathBuf>,
    /// Do not record children
    #[arg(long)]
    no_follow: bool,
    /// Frames of the language that a program is written in (Python, JavaScript, Ruby, PHP, Perl):
    /// auto where there are any
    #[arg(long, value_enum, value_name = "auto|off", default_value_t = LanguageArgument::Auto)]
    lang: LanguageArgument,
    /// Record a sample of the allocations: one in so many bytes on average (512K), `auto`, `off` or
    /// `all`. `auto` is as few as make 200 samples a second (auto:N: N). Reports then have
    /// estimates with their 95 % intervals
    #[arg(long, value_name = "SIZE|auto|off|all", value_parser = parse_sample_rate)]
    sample: Option<SampleRate>,
    /// With --sample: record all allocations for a while when what is live has grown by so much
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, requires = "sample")]
    full_on_growth: Option<u64>,
    /// With --full-on-growth: for so long
    #[arg(long = "for", value_name = "S", value_parser = parse_seconds, default_value = "60")]
    full_for: Duration,
    /// Parts of the events that the file has
    #[arg(long, value_enum, default_value_t = ModeArgument::Trace)]
    mode: ModeArgument,
    /// Circular: keep the newest events in memory of this size until the stop, and what was live
    /// when they begin
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["max_file"])]
    memory: Option<u64>,
    /// End the recording when the file has this size, and the program runs on untraced; with
    /// --rotate, begin the next file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, alias = "maxfile")]
    max_file: Option<u64>,
    /// Close the file after so long and begin the next: NAME.000001.heapr, NAME.000002.heapr and so
    /// on are closed, NAME.heapr is the present one
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns, conflicts_with_all = ["memory"])]
    rotate: Option<u64>,
    /// With --rotate: so many closed files stay, the oldest is removed
    #[arg(long, value_name = "N", default_value_t = 24, requires = "rotate")]
    keep: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LanguageArgument {
    Auto,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ModeArgument {
    /// All events
    Trace,
    /// No events, only the live heap and snapshots of it
    Snapshot,
}

fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OnFullArgument {
    /// The thread waits
    Block,
    /// The event is counted as lost
    Drop,
}

fn parse_stacks(text: &str) -> Result<StackEvents, String> {
    StackEvents::from_text(text).map_err(|error| error.to_string())
}

/// Parses a sampling rate.
pub(crate) fn parse_sample_rate(text: &str) -> Result<SampleRate, String> {
    let auto =
        |number: &str| number.parse().map_err(|_| format!("auto:{number}: a number of samples a second"));
    let rate = match text.split_once(':') {
        _ if text == "all" => SampleRate::All,
        _ if text == "off" => SampleRate::Off,
        _ if text == "auto" => SampleRate::Auto { per_second: AUTO_PER_SECOND },
        Some(("auto", number)) => SampleRate::Auto { per_second: auto(number)? },
        _ => SampleRate::Every { bytes: parse_size(text)? },
    };
    rate.check().map_err(|error| error.to_string())?;
    Ok(rate)
}

fn parse_percent(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().ok().filter(|&percent| percent > 0).ok_or_else(|| format!("{text}: a percentage, as 20%"))
}

impl RecordArguments {
    /// Whether the session writes several files, one after the other.
    pub(crate) fn has_files_in_turn(&self) -> bool {
        self.rotate.is_some()
    }

    /// Puts the options into a session's properties.
    pub(crate) fn apply(&self, properties: &mut SessionProperties) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.flush_timer.is_zero() && self.flush_timer < Duration::from_secs(1_000_000),
            "--flush-timer takes seconds above 0, not {}",
            self.flush_timer.as_secs_f64()
        );
        properties.buffer_bytes = self.buffer_size.saturating_mul(1024);
        properties.min_buffers = self.min_buffers;
        properties.max_buffers = self.max_buffers;
        properties.flush_timer = self.flush_timer;
        properties.on_full = match self.on_full {
            OnFullArgument::Block => OnFull::Block,
            OnFullArgument::Drop => OnFull::Drop,
        };
        properties.stacks = self.stacks;
        properties.max_frames = self.max_frames;
        properties.mmap = self.mmap;
        properties.follow = !self.no_follow;
        properties.languages = self.lang == LanguageArgument::Auto;
        properties.mode = match (self.mode, self.memory) {
            (ModeArgument::Trace, None) => LoggingMode::Trace,
            (ModeArgument::Trace, Some(bytes)) => LoggingMode::Memory { bytes },
            (ModeArgument::Snapshot, None) => LoggingMode::Snapshot,
            (ModeArgument::Snapshot, Some(_)) => {
                anyhow::bail!("--memory keeps events, --mode snapshot keeps none: choose one of them")
            }
        };
        properties.max_file_bytes = self.max_file;
        properties.rotation = self.rotate.map(|interval_ns| Rotation {
            interval: Duration::from_nanos(interval_ns),
            keep_count: self.keep,
        });
        properties.sample = self.sample;
        properties.full_on_growth =
            self.full_on_growth.map(|percent| FullOnGrowth { percent, duration: self.full_for });
        for file in &self.allocator {
            let text = heapr_files::read_text(file, heapr_files::LIST_BYTES_MAX);
            properties.allocators.push(text.with_context(|| format!("cannot read {}", file.display()))?);
        }
        if let Some(every) = std::env::var_os(VERIFY_VARIABLE) {
            let every = every.to_string_lossy().into_owned();
            properties.verify_every =
                every.parse().with_context(|| format!("{VERIFY_VARIABLE}={every} is no whole number"))?;
        }
        properties.check().map_err(anyhow::Error::from)
    }
}
