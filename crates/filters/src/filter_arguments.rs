//! The options that choose allocations, shared by all commands that query a trace.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ArgAction;
use heapr_query::{
    AllocationType, CullList, Filter, FramePattern, InnermostFrames, Moment, Span, Suppressions, ThreadChoice,
};
use heapr_trace::{HeapId, HeapName, Trace};
use serde::{Deserialize, Deserializer, Serialize};

use crate::find_snapshot;
use crate::quantity::{parse_bytes, parse_duration_ns, parse_time_ns};
use crate::shown_frames::ShownFrames;

/// Which allocations are counted, and which innermost frames are removed.
///
/// In a request the fields are the long options, and their values text, as on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, clap::Args, Deserialize, Serialize)]
#[command(next_help_heading = "Filters")]
#[serde(default, deny_unknown_fields)]
pub struct FilterArguments {
    /// Only this process; several: with commas, or the option again
    #[arg(long, value_name = "PID", value_delimiter = ',', allow_negative_numbers = true)]
    #[serde(deserialize_with = "without_blanks")]
    pub pid: Vec<String>,
    /// Only this heap: malloc, mmap, the name of one of the program's own, or a number
    #[arg(long, value_name = "HEAP")]
    #[serde(deserialize_with = "without_blanks")]
    pub heap: Vec<String>,
    /// Only allocations of this thread: its id, or its name with `*`
    #[arg(long, value_name = "TID|NAME")]
    #[serde(deserialize_with = "without_blanks")]
    pub thread: Vec<String>,
    /// Only events between two times: microseconds since the start, with h, m, s, ms, us or ns
    /// (1h30m), or wall-clock
    #[arg(long, action = ArgAction::Set, num_args = 2, value_names = ["T1", "T2"], allow_negative_numbers = true)]
    pub range: Option<Vec<String>>,
    /// Only lifetimes of at least L1 and below L2: microseconds, or with units as in 1h30m
    #[arg(long, action = ArgAction::Set, alias = "age", num_args = 2, value_names = ["L1", "L2"], allow_negative_numbers = true)]
    pub lifetime: Option<Vec<String>>,
    /// Only sizes of at least S1 and below S2
    #[arg(long, action = ArgAction::Set, num_args = 2, value_names = ["S1", "S2"], allow_negative_numbers = true)]
    pub size: Option<Vec<String>>,
    /// Only what was live at the peak, or at a time
    #[arg(long, value_name = "peak|TIME", allow_negative_numbers = true)]
    pub at: Option<String>,
    /// Only what a snapshot of the live heap holds: its number, `last`, or its name
    #[arg(long, value_name = "N|NAME", conflicts_with = "at")]
    pub snapshot: Option<String>,
    /// Only what its thread freed before it allocated again
    #[arg(long)]
    pub temporary: bool,
    /// Only this type against the range: allocated inside or outside, freed inside or outside
    #[arg(long, value_name = "aifi|aifo|aofi|aofo")]
    pub r#type: Option<String>,
    /// Only stacks with a frame that matches: module!, module!symbol, symbol; given several times,
    /// one of them
    #[arg(long, alias = "requireframes", value_name = "FRAME")]
    #[serde(deserialize_with = "without_blanks")]
    pub require_frames: Vec<String>,
    /// Only stacks whose innermost frame, after culling, matches: what rankings of frames and
    /// images count for it; may be given several times
    #[arg(long, value_name = "FRAME")]
    #[serde(deserialize_with = "without_blanks")]
    pub innermost_frames: Vec<String>,
    /// Leave out stacks that a file of suppressions names, in LeakSanitizer's or Valgrind's syntax
    // A request names no files.
    #[serde(skip)]
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// Leave out what libraries are known to keep until the end: libstdc++'s pool, locales, the
    /// dynamic linker's lists
    #[arg(long)]
    pub hide_known: bool,
    /// Remove innermost frames that match; may be given several times
    #[arg(long, alias = "cullframes", value_name = "FRAME")]
    #[serde(deserialize_with = "without_blanks")]
    pub cull_frames: Vec<String>,
    /// Remove innermost frames listed in a file, one a line; may be given several times
    // A request names no files.
    #[serde(skip)]
    #[arg(long, alias = "culllists", value_name = "FILE")]
    pub cull_lists: Vec<PathBuf>,
    /// Do not remove the allocator's own entry points
    #[arg(long)]
    pub no_default_cull: bool,
    /// Frames shown of stacks in a language (Python, JavaScript, …): all, all without the
    /// interpreter's, or native ones [default: mixed]
    #[arg(long, value_enum, value_name = "mixed|own|native")]
    pub lang_frames: Option<ShownFrames>,
}

impl FilterArguments {
    /// The filter for a trace.
    ///
    /// # Errors
    /// A value has a wrong syntax, or the trace does not have what it names.
    pub fn filter(&self, trace: &Trace) -> anyhow::Result<Filter> {
        let span =
            |option: &str, values: &Option<Vec<String>>, parse: &dyn Fn(&str) -> anyhow::Result<u64>| {
                let Some(values) = values else { return Ok(None) };
                let [from, to] = values.as_slice() else {
                    bail!("--{option} takes two values, not {}", values.len())
                };
                let context = || format!("--{option} {from} {to}");
                let span =
                    Span { from: parse(from).with_context(context)?, to: parse(to).with_context(context)? };
                anyhow::Ok(Some(span))
            };
        let time = |text: &str| parse_time_ns(text, trace.session().start_unix_ns);
        let at = match self.at.as_deref() {
            None => None,
            Some(text) if text.eq_ignore_ascii_case("peak") => Some(Moment::Peak),
            Some(text) => Some(Moment::At { time_ns: time(text).with_context(|| format!("--at {text}"))? }),
        };
        let at = match &self.snapshot {
            Some(text) => Some(Moment::Snapshot { number: find_snapshot(trace, text)?.number }),
            None => at,
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
            pids: self
                .pid
                .iter()
                .map(|text| text.parse().with_context(|| format!("--pid {text}: it is no process id")))
                .collect::<anyhow::Result<_>>()?,
            heaps: parse_heaps(trace.heap_names(), &self.heap)?,
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
            required_frames: patterns(&self.require_frames)?,
            innermost: match self.innermost_frames.as_slice() {
                [] => None,
                texts => Some(InnermostFrames { patterns: patterns(texts)?, cull: self.cull_list()? }),
            },
            left_out: self.left_out()?,
        })
    }

    /// Selects the frames that readers of a trace are shown, if the options name any.
    #[must_use]
    pub fn shown(&self, trace: Trace) -> Trace {
        match self.lang_frames {
            Some(shown) => trace.with_language_frames(shown.into()),
            None => trace,
        }
    }

    /// The suppressions, whose stacks are not counted.
    ///
    /// # Errors
    /// A file cannot be read, or has a wrong syntax.
    pub fn left_out(&self) -> anyhow::Result<Suppressions> {
        let known = if self.hide_known { Suppressions::known() } else { Suppressions::default() };
        self.suppress.iter().try_fold(known, |all, path| Ok(all.and(&read_suppressions(path)?)))
    }

    /// The files that [`FilterArguments::cull_list`] reads.
    pub fn cull_list_files(&self) -> impl Iterator<Item = &Path> {
        self.cull_lists.iter().map(PathBuf::as_path)
    }

    /// The list of frames to remove.
    ///
    /// # Errors
    /// A list cannot be read, or a pattern is empty.
    pub fn cull_list(&self) -> anyhow::Result<CullList> {
        let mut list = if self.no_default_cull { CullList::empty() } else { CullList::built_in() };
        for text in &self.cull_frames {
            list.add(FramePattern::parse(text)?);
        }
        for path in &self.cull_lists {
            let text = heapr_files::read_text(path, heapr_files::LIST_BYTES_MAX)
                .with_context(|| format!("cannot read the cull list {}", path.display()))?;
            list.add_lines(&path.display().to_string(), &text)?;
        }
        Ok(list)
    }

    /// Option, values, and number of values per occurrence of the option.
    fn options(&self) -> impl Iterator<Item = (&'static str, &[String], usize)> {
        let spans = [&self.range, &self.lifetime, &self.size].map(|span| span.as_deref().unwrap_or_default());
        let all = [
            ("pid", self.pid.as_slice(), 1),
            ("heap", &self.heap, 1),
            ("thread", &self.thread, 1),
            ("range", spans[0], 2),
            ("lifetime", spans[1], 2),
            ("size", spans[2], 2),
            ("at", self.at.as_slice(), 1),
            ("snapshot", self.snapshot.as_slice(), 1),
            ("type", self.r#type.as_slice(), 1),
            ("require-frames", &self.require_frames, 1),
            ("innermost-frames", &self.innermost_frames, 1),
        ];
        all.into_iter().filter(|(_, values, _)| !values.is_empty())
    }

    /// The filters as text for a report: options that decide about counting, without culling.
    #[must_use]
    pub fn counted(&self) -> String {
        let options = self.options().flat_map(|(option, values, together)| {
            values.chunks(together).map(move |values| format!("--{option} {}", values.join(" ")))
        });
        let files = self.suppress.iter().map(|path| format!("--suppress {}", path.display()));
        let flags = [("--temporary", self.temporary), ("--hide-known", self.hide_known)];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned());
        options.chain(files).chain(flags).collect::<Vec<_>>().join(" ")
    }

    /// The words of a command line with these options. A value that looks like an option is joined
    /// to its own option by `=`.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let lists: Vec<String> = self.cull_lists.iter().map(|path| path.display().to_string()).collect();
        let suppress: Vec<String> = self.suppress.iter().map(|path| path.display().to_string()).collect();
        let culled = [
            ("cull-frames", self.cull_frames.as_slice(), 1),
            ("cull-lists", &lists, 1),
            ("suppress", &suppress, 1),
        ];
        let mut words = Vec::new();
        for (option, values, together) in self.options().chain(culled) {
            for values in values.chunks(together) {
                match values {
                    [value] if value.starts_with('-') => words.push(format!("--{option}={value}")),
                    _ => words.extend(std::iter::once(format!("--{option}")).chain(values.iter().cloned())),
                }
            }
        }
        let flags = [
            ("temporary", self.temporary),
            ("hide-known", self.hide_known),
            ("no-default-cull", self.no_default_cull),
        ];
        for (option, is_set) in flags {
            words.extend(is_set.then(|| format!("--{option}")));
        }
        if let Some(shown) = self.lang_frames {
            words.extend(["--lang-frames", shown.word()].map(str::to_owned));
        }
        words
    }
}

fn patterns(texts: &[String]) -> heapr_query::Result<Vec<FramePattern>> {
    texts.iter().map(|text| FramePattern::parse(text)).collect()
}

/// Reads a file of suppressions.
///
/// # Errors
/// The file cannot be read, or has a wrong syntax.
pub fn read_suppressions(path: &Path) -> anyhow::Result<Suppressions> {
    let text = heapr_files::read_text(path, heapr_files::LIST_BYTES_MAX)
        .with_context(|| format!("cannot read the suppressions {}", path.display()))?;
    Suppressions::parse(&text).with_context(|| path.display().to_string())
}

/// Drops blank values: a page sends the contents of all its fields, even empty ones.
fn without_blanks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut values = Vec::<String>::deserialize(deserializer)?;
    values.retain(|value| !value.trim().is_empty());
    Ok(values)
}

/// Parses heaps; a name stands for all heaps that had it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_becomes_the_options_of_the_same_names() {
        let text = r#"{"pid": ["7"], "thread": ["-x"], "range": ["1s", "2s"], "temporary": true, "require_frames": ["a b", ""]}"#;
        let filter: FilterArguments = serde_json::from_str(text).unwrap();
        let words =
            ["--pid", "7", "--thread=-x", "--range", "1s", "2s", "--require-frames", "a b", "--temporary"];
        assert_eq!(filter.words(), words);
        let again: FilterArguments = serde_json::from_value(serde_json::to_value(&filter).unwrap()).unwrap();
        assert_eq!(again, filter);
        assert_eq!(filter.counted(), "--pid 7 --thread -x --range 1s 2s --require-frames a b --temporary");
        for text in [r#"{"rage": ["1s", "2s"]}"#, r#"{"cull_lists": ["/etc/passwd"]}"#] {
            assert!(serde_json::from_str::<FilterArguments>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_words_are_read_back() {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            filters: FilterArguments,
        }
        let text = r#"{"pid": ["7", "8"], "heap": ["-1"], "size": ["1", "2K"], "at": "peak", "cull_frames": ["--x", "y"]}"#;
        let filter: FilterArguments = serde_json::from_str(text).unwrap();
        let line = <Line as clap::Parser>::try_parse_from(filter.words()).unwrap();
        assert_eq!(line.filters, filter);
        assert_eq!(filter.counted(), "--pid 7 --pid 8 --heap -1 --size 1 2K --at peak");
    }
}
