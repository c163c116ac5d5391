//! Commands of `heapr snapshot` that all kinds of heaps have.
//!
//! A kind of heap implements [`Heaps`], with options of its own. Commands that follow references
//! read native heaps in the form of V8's ([`super::native::NativeHeap`]).

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::limit::Limit;
use crate::output::OutputArguments;

/// Heaps in files that can be listed and compared.
pub(crate) trait Heaps {
    /// Options of `summary` for this kind only.
    type SummaryOptions: Args;
    /// Options of `diff` for this kind only.
    type DiffOptions: Args;
    /// Options of `suspects` for this kind only.
    type SuspectsOptions: Args;

    /// Lists the contents of a snapshot.
    fn summary(asked: &SummaryQuestion, options: &Self::SummaryOptions) -> anyhow::Result<ExitCode>;

    /// Compares snapshots.
    fn diff(asked: &DiffQuestion, options: &Self::DiffOptions) -> anyhow::Result<ExitCode>;

    /// Lists what grows.
    fn suspects(asked: &SuspectsQuestion, options: &Self::SuspectsOptions) -> anyhow::Result<ExitCode>;
}

/// Options of `summary` for any heap.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SummaryQuestion {
    /// A V8 snapshot, a heap dump of Java or Ruby, or a trace with snapshots; - is standard
    /// input. They end in .heapsnapshot, .heaptimeline, .hprof, .json, .heapr, and may be packed
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Order of the list [default: retained of a V8 heap, bytes of a native one]
    #[arg(long, value_enum)]
    pub(crate) sort: Option<SummaryOrder>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Orders of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SummaryOrder {
    /// Most bytes kept alive (V8)
    Retained,
    /// Most bytes of the objects or blocks themselves
    #[value(alias = "shallow")]
    Bytes,
    /// Most objects or blocks (of single objects: the smallest id)
    Count,
    /// Nearest to a root (V8)
    Distance,
    /// By name (V8)
    Name,
    /// Oldest block (native)
    Oldest,
    /// Youngest block (native)
    Youngest,
}

impl SummaryOrder {
    /// Returns the error for an order that heaps of this kind do not have.
    pub(crate) fn refuse<T>(self, kind: HeapKind) -> anyhow::Result<T> {
        bail!("--sort {}: {} heaps have no such order", format!("{self:?}").to_lowercase(), kind.name())
    }
}

/// Options of `diff` for any heaps.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct DiffQuestion {
    /// Snapshots, the oldest first. Two V8 snapshots show the objects that came and went, and more
    /// the course of each class. Or one or two traces with snapshots (.heapr)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Exit with 1 if there is more growth than this: 10M (bytes in all). For a class of a V8 heap:
    /// Session=10K (bytes), Session=100 (objects); (total) is all classes
    #[arg(long, value_name = "[CLASS=]AMOUNT")]
    pub(crate) fail_if_growth: Vec<Limit>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Options of `suspects` for any heaps.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SuspectsQuestion {
    /// Snapshots of one process in the order of time: V8 snapshots, or traces with three or more
    /// snapshots in all (.heapr). A single V8 snapshot shows its largest owners
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Exit with 1 if a suspect of medium or high confidence has grown by more than this
    #[arg(long, value_name = "BYTES", value_parser = heapr_filters::quantity::parse_bytes)]
    pub(crate) fail_if_growth: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Kinds of heaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeapKind {
    V8,
    Native,
}

impl HeapKind {
    /// Determines the kind of the heaps in files by how the files begin.
    pub(crate) fn of(files: &[PathBuf]) -> anyhow::Result<Self> {
        // A V8 sampling profile can be read as a trace, but has its own commands here.
        let is_native =
            |file: &&PathBuf| is_trace(file) && heapr_import::tool_of(file) != Some(heapr_import::V8_PROFILE);
        let native = files.iter().find(is_native);
        let other = files.iter().find(|file| !is_native(file));
        match (native, other) {
            (Some(native), Some(other)) => bail!(
                "{} is a trace and {} is none: only snapshots of one kind can be compared",
                native.display(),
                other.display()
            ),
            (Some(_), None) => Ok(Self::Native),
            (None, _) => Ok(Self::V8),
        }
    }

    /// Name in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V8 => "V8",
            Self::Native => "native",
        }
    }
}

/// Whether a file begins as a trace does; `false` for a pipe, because the bytes read here would be
/// lost.
pub(crate) fn is_trace(path: &Path) -> bool {
    let mut magic = [0; 8];
    heapr_files::regular(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && (magic == *b"HEAPRTRC" || heapr_import::tool_of(path).is_some())
}

/// Options that only one kind of heap has, and those of them that were given.
#[derive(Debug)]
pub(crate) struct OnlyOf<T> {
    pub(crate) options: T,
    given: Vec<String>,
}

impl<T> OnlyOf<T> {
    /// Whether any of the options was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.given.is_empty()
    }

    /// Whether an option besides these was given.
    pub(crate) fn has_other_than(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| !names.contains(&given.as_str()))
    }

    /// Refuses all options but these, for a reason.
    pub(crate) fn refuse_but(&self, names: &[&str], reason: &str) -> anyhow::Result<()> {
        let others: Vec<&str> =
            self.given.iter().map(String::as_str).filter(|given| !names.contains(given)).collect();
        ensure!(others.is_empty(), "{}: {reason}", others.join(", "));
        Ok(())
    }

    /// Refuses the options if the heap is of another kind.
    pub(crate) fn refuse(&self, kind: HeapKind) -> anyhow::Result<()> {
        let of = if kind == HeapKind::V8 { "native" } else { "V8" };
        ensure!(
            self.given.is_empty(),
            "{}: of {of} heaps only, and this is a {} one",
            self.given.join(", "),
            kind.name()
        );
        Ok(())
    }
}

impl<T: Args> Args for OnlyOf<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Args> FromArgMatches for OnlyOf<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let own = T::augment_args(Command::new(""));
        let is_given = |id: &str| id != "quiet" && matches.value_source(id) == Some(ValueSource::CommandLine);
        let given = own.get_arguments().filter(|argument| is_given(argument.get_id().as_str()));
        let name = |argument: &clap::Arg| format!("--{}", argument.get_long().unwrap_or_default());
        Ok(Self { given: given.map(name).collect(), options: T::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
