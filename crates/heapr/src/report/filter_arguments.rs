//! The options that choose allocations, shared by all commands that query a trace.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ArgAction;
use heapr_query::{AllocationType, CullList, Filter, FramePattern, Moment, Span, ThreadChoice};
use heapr_trace::{HeapId, HeapName, Trace};

use crate::snapshot_native::find::find_snapshot;

use super::quantity::{parse_bytes, parse_duration_ns, parse_time_ns};

/// Which allocations are counted, and which innermost frames are removed.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArguments {
    /// Only this process; may be given several times
    #[arg(long, value_name = "PID", num_args = 1.., allow_negative_numbers = true)]
    pid: Vec<u32>,
    /// Only this heap: malloc, mmap, the name of one of the program's own, or a number
    #[arg(long, value_name = "HEAP")]
    heap: Vec<String>,
    /// Only allocations of this thread: its id, or its name with `*`
    #[arg(long, value_name = "TID|NAME")]
    thread: Vec<String>,
    /// Only events between two times: microseconds since the start, with h, m, s, ms, us or ns (1h30m), or wall-clock
    #[arg(long, action = ArgAction::Set, num_args = 2, value_names = ["T1", "T2"], allow_negative_numbers = true)]
    range: Option<Vec<String>>,
    /// Only lifetimes of at least L1 and below L2: microseconds, or with units as in 1h30m
    #[arg(long, action = ArgAction::Set, alias = "age", num_args = 2, value_names = ["L1", "L2"], allow_negative_numbers = true)]
    lifetime: Option<Vec<String>>,
    /// Only sizes of at least S1 and below S2
    #[arg(long, action = ArgAction::Set, num_args = 2, value_names = ["S1", "S2"], allow_negative_numbers = true)]
    size: Option<Vec<String>>,
    /// Only what was live at the peak, or at a time
    #[arg(long, value_name = "peak|TIME", allow_negative_numbers = true)]
    at: Option<String>,
    /// Only what a snapshot of the live heap holds: its number, `last`, or its name
    #[arg(long, value_name = "N|NAME", conflicts_with = "at")]
    snapshot: Option<String>,
    /// Only what its thread freed before it allocated again
    #[arg(long)]
    temporary: bool,
    /// Only this type against the range: allocated inside or outside, freed inside or outside
    #[arg(long, value_name = "aifi|aifo|aofi|aofo")]
    r#type: Option<String>,
    /// Only stacks with a frame that matches one of these: module!, module!symbol, symbol
    #[arg(long, alias = "requireframes", value_name = "FRAME", num_args = 1..)]
    require_frames: Vec<String>,
    /// Remove innermost frames that match
    #[arg(long, alias = "cullframes", value_name = "FRAME", num_args = 1..)]
    cull_frames: Vec<String>,
    /// Remove innermost frames listed in files, one a line
    #[arg(long, alias = "culllists", value_name = "FILE", num_args = 1..)]
    cull_lists: Vec<PathBuf>,
    /// Do not remove the allocator's own entry points
    #[arg(long)]
    no_default_cull: bool,
}

impl FilterArguments {
    /// The filter, for this trace.
    pub(crate) fn filter(&self, trace: &Trace) -> anyhow::Result<Filter> {
        self.filter_from(trace.session().start_unix_ns, Some(trace))
    }

    /// The filter; `start_unix_ns`: the trace's start, for wall-clock times. Without the trace itself no snapshot can be chosen,
    /// and heaps only by number.
    pub(crate) fn filter_from(&self, start_unix_ns: u64, trace: Option<&Trace>) -> anyhow::Result<Filter> {
        let span =
            |option: &str, values: &Option<Vec<String>>, parse: &dyn Fn(&str) -> anyhow::Result<u64>| {
                let Some([from, to]) = values.as_deref() else { return Ok(None) };
                let context = || format!("--{option} {from} {to}");
                let span =
                    Span { from: parse(from).with_context(context)?, to: parse(to).with_context(context)? };
                anyhow::Ok(Some(span))
            };
        let time = |text: &str| parse_time_ns(text, start_unix_ns);
        let at = match self.at.as_deref() {
            None => None,
            Some(text) if text.eq_ignore_ascii_case("peak") => Some(Moment::Peak),
            Some(text) => Some(Moment::At { time_ns: time(text).with_context(|| format!("--at {text}"))? }),
        };
        let at = match (&self.snapshot, trace) {
            (Some(text), Some(trace)) => {
                Some(Moment::Snapshot { number: find_snapshot(trace, text)?.number })
            }
            (Some(text), None) => {
                anyhow::bail!(
                    "--snapshot {text}: here only events can be chosen; `heapr report` shows snapshots"
                )
            }
            (None, _) => at,
        };
        let allocation_type = match self.r#type.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("aifi") => Some(AllocationType::Aifi),
            Some("aifo") => Some(AllocationType::Aifo),
            Some("aofi") => Some(AllocationType::Aofi),
            Some("aofo") => Some(AllocationType::Aofo),
            Some(other) => anyhow::bail!("--type {other}: it is one of aifi, aifo, aofi, aofo"),
        };
        Ok(Filter {
            pids: self.pid.clone(),
            heaps: parse_heaps(trace.map_or(&[], Trace::heap_names), &self.heap)?,
            threads: self
                .thread
                .iter()
                .map(|text| text.parse().map_or_else(|_| ThreadChoice::Name(text.clone()), ThreadChoice::Tid))
                .collect(),
            range: span("range", &self.range, &time)?,
            lifetime: span("lifetime", &self.lifetime, &parse_duration_ns)?,
            size: span("size", &self.size, &parse_bytes)?,
            at,
            is_temporary_only: self.temporary,
            allocation_type,
            required_frames: self
                .require_frames
                .iter()
                .map(|text| FramePattern::parse(text))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The snapshot that is asked for, as it was given.
    pub(crate) fn snapshot(&self) -> Option<&str> {
        self.snapshot.as_deref()
    }

    /// The files that [`FilterArguments::cull_list`] reads.
    pub(crate) fn cull_list_files(&self) -> impl Iterator<Item = &Path> {
        self.cull_lists.iter().map(PathBuf::as_path)
    }

    /// The frames to be removed.
    pub(crate) fn cull_list(&self) -> anyhow::Result<CullList> {
        let mut list = if self.no_default_cull { CullList::empty() } else { CullList::built_in() };
        for text in &self.cull_frames {
            list.add(FramePattern::parse(text)?);
        }
        for path in &self.cull_lists {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the cull list {}", path.display()))?;
            list.add_lines(&path.display().to_string(), &text)?;
        }
        Ok(list)
    }

    /// The filters in the words of the command line.
    pub(crate) fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |option: &str, values: &[String]| {
            if !values.is_empty() {
                words.push(format!("--{option} {}", values.join(" ")));
            }
        };
        let pids: Vec<String> = self.pid.iter().map(ToString::to_string).collect();
        add("pid", &pids);
        add("heap", &self.heap);
        add("thread", &self.thread);
        add("range", self.range.as_deref().unwrap_or_default());
        add("lifetime", self.lifetime.as_deref().unwrap_or_default());
        add("size", self.size.as_deref().unwrap_or_default());
        add("at", self.at.as_slice());
        add("snapshot", self.snapshot.as_slice());
        add("type", self.r#type.as_slice());
        add("require-frames", &self.require_frames);
        if self.temporary {
            words.push("--temporary".to_owned());
        }
        words.join(" ")
    }
}

/// Numbers of heaps; a name stands for all that had it.
fn parse_heaps(names: &[HeapName], texts: &[String]) -> anyhow::Result<Vec<HeapId>> {
    let mut heaps = Vec::new();
    for text in texts {
        let named = names.iter().filter(|name| name.name == *text).map(|name| name.heap);
        let before = heaps.len();
        heaps.extend(named);
        if heaps.len() > before {
            continue;
        }
        heaps.push(match text.as_str() {
            "malloc" => HeapId::MALLOC,
            "mmap" => HeapId::MMAP,
            number => HeapId(number.parse().with_context(|| {
                format!("--heap {text}: neither malloc, mmap, a number nor the name of a heap of this trace")
            })?),
        });
    }
    Ok(heaps)
}
