//! Breakdown of all resident memory of a process.

mod difference;
mod group;
mod heap_look;
mod json;
mod moments;
mod objects;
mod pinning;
mod quiet_memory;
mod reading;
mod recorded;
mod saved_file;
mod series;
mod text;
mod v8_figures;
mod written_pages;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use heapr_filters::quantity::parse_seconds;
use heapr_findings::{Finding, Kind};
use heapr_query::Confidence;
use heapr_resident::{Account, Advice, Beside, Certainty, MallocFigures, SavedMoment, advice};
use heapr_session::SessionClient;
use heapr_table::quantity::{bytes, plural};

use self::difference::Difference;
use self::group::Group;
pub(super) use self::moments::{Moments, of_answers, of_recording};
use self::objects::ObjectSum;
use self::pinning::{BlockSum, PinnedBy};
use self::v8_figures::V8Figures;
use crate::output::Output;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;

/// Options that only a process has.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ResidentArguments {
    /// Look into glibc's heap: what is live, free in whole pages, free and pinned. The process
    /// stands still for milliseconds; a large heap is read while it runs
    #[arg(long)]
    deep: bool,
    /// Read the objects of Python or Ruby, too: all memory in one sum, and what holds the native
    /// blocks. Implies --deep
    #[arg(long, conflicts_with = "every")]
    objects: bool,
    /// Ask V8 what its heap holds. It is asked over the process's inspector, which is opened for it
    /// and closed again where it is not open
    #[arg(long)]
    v8: bool,
    /// Explain all processes of the process's control group, too, and what the kernel adds
    #[arg(long)]
    cgroup: bool,
    /// Say what has changed since an earlier answer (--format json) or the last of a series
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    /// Look again each SECONDS until the process ends: a line of JSON each
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with_all = ["diff", "cgroup"])]
    every: Option<Duration>,
}

/// Resident memory of a process, explained.
#[derive(Debug)]
pub(super) struct Resident {
    pid: u32,
    /// Path of the program's file.
    executable: String,
    account: Account,
    beside: Beside,
    /// Circumstances of reading glibc's heap, if it was read.
    moment: Option<Moment>,
    /// Figures of glibc's malloc itself, if its heap was read.
    malloc_figures: Option<MallocFigures>,
    /// Figures of V8 itself, if they were requested.
    v8: Option<V8Figures>,
    /// Objects and all else in one sum, if that was requested.
    objects: Option<ObjectSum>,
    /// Stacks whose blocks pin free memory, for a recorded process.
    pinned_by: Vec<PinnedBy>,
    /// Live blocks that were recorded.
    recorded: Option<BlockSum>,
    /// Changes since an earlier answer.
    difference: Option<Difference>,
    /// Control group of the process.
    group: Option<Group>,
    /// Facts that could not be determined, and why.
    limits: Vec<String>,
}

/// Circumstances under which a heap was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Time for which the process was stopped; `None` if it ran.
    pub(super) held: Option<Duration>,
    /// Whether no thread was in the allocator.
    pub(super) is_quiet: bool,
}

/// Reads a process.
pub(super) fn of_process(pid: u32, options: &ResidentArguments) -> anyhow::Result<Resident> {
    let mut resident = reading::read(pid, options.deep || options.objects, &mut ())?;
    if options.objects {
        match ObjectSum::of(pid, &resident.account) {
            Ok(sum) => resident.objects = Some(sum),
            Err(error) => resident.limits.push(format!("its objects were not read: {error:#}")),
        }
    }
    if options.v8 {
        match V8Figures::ask(pid) {
            Ok(figures) => resident.v8 = Some(figures),
            Err(error) => resident.limits.push(format!("V8 was not asked: {error:#}")),
        }
    } else if resident.account.bytes(heapr_resident::Class::V8Heap) > 0 {
        resident.limits.push("how much of V8's heap is used (--v8 asks over the inspector)".to_owned());
    }
    if let Some(old) = &options.diff {
        resident.difference = Some(difference::since(old, &SavedMoment::of_account(&resident.account))?);
    }
    if options.cgroup {
        resident.group = Some(group::of_process(pid)?);
    }
    Ok(resident)
}

/// Reads the resident bytes of a process by class: key and name of the class, and bytes. The
/// process is not stopped.
///
/// # Errors
/// The process has ended, or may not be read.
pub(crate) fn class_sums(pid: u32) -> anyhow::Result<Vec<(&'static str, &'static str, u64)>> {
    let resident = reading::read(pid, false, &mut ())?;
    let sum = |line: &heapr_resident::Line| (line.class.key(), line.class.label(), line.pages.rss_bytes);
    Ok(resident.account.lines().iter().map(sum).collect())
}

/// Reads a process at intervals, if that was requested.
pub(super) fn series(
    pid: u32,
    options: &ResidentArguments,
    out: impl FnOnce() -> anyhow::Result<Output>,
) -> anyhow::Result<bool> {
    let Some(interval) = options.every else { return Ok(false) };
    let mut out = out()?;
    series::write(pid, interval, options.deep, &mut out)?;
    out.end()?;
    Ok(true)
}

/// Reads a process that a session records, whose live blocks have stacks.
pub(super) fn of_session(
    client: &SessionClient,
    names: &NameArguments,
    own: &OwnArguments,
) -> anyhow::Result<Option<Resident>> {
    recorded::look(client, names, own)
}

impl ResidentArguments {
    /// Path of the earlier answer to compare with.
    pub(super) fn old(&self) -> Option<&std::path::Path> {
        self.diff.as_deref()
    }
}

impl Resident {
    /// Returns advice on the memory as findings.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found = advice(&self.account, &self.beside);
        self.name_pinning(&mut found);
        let findings = found.into_iter().map(|advice| Finding {
            kind: Kind::Resident,
            sentence: advice.sentence,
            confidence: match advice.certainty {
                Certainty::Low => Confidence::Low,
                Certainty::Medium => Confidence::Medium,
                Certainty::High => Confidence::High,
            },
            bytes: advice.bytes,
            evidence: advice.evidence,
            command: format!("heapr explain {} --deep --format json", self.pid),
            ..Finding::default()
        });
        findings.collect()
    }

    /// Returns the verdict of the findings.
    pub(super) fn verdict(&self) -> String {
        let most = advice(&self.account, &self.beside).iter().map(|advice| advice.bytes).max();
        match most {
            Some(most) => format!(
                "Of {} resident, up to {} could be saved.{}",
                bytes(self.account.pages.rss_bytes),
                bytes(most),
                self.unread_heap().map_or(String::new(), |unread| format!(" {unread}"))
            ),
            None if self.account.is_of_counters => {
                "Whether anything would save memory here is unknown: what its memory is was refused."
                    .to_owned()
            }
            None => match self.unread_heap() {
                Some(unread) => {
                    format!("{unread} Nothing else that the rules know of would save memory here.")
                }
                None => "Nothing that the rules know of would save memory here.".to_owned(),
            },
        }
    }

    /// Sentence about a large heap of glibc whose blocks were not read: much of it may be free.
    fn unread_heap(&self) -> Option<String> {
        const LEAST_BYTES: u64 = 8 << 20;
        let unread = self.account.bytes(heapr_resident::Class::GlibcHeap);
        (unread >= LEAST_BYTES).then(|| {
            format!(
                "How much of malloc's {} is free was not looked at: --deep does, and the process stands still for some \
                 milliseconds.",
                bytes(unread)
            )
        })
    }

    /// Adds the names of stacks that pin free memory, if they were recorded.
    fn name_pinning(&self, found: &mut [Advice]) {
        let Some(advice) = found.iter_mut().find(|advice| advice.rule == "pinned") else { return };
        /// Most stacks named; others are in the line of pinned memory.
        const MOST: usize = 3;
        let named = self.pinned_by.iter().take(MOST).map(|pinned| {
            format!(
                "{} of {} from {} keep {} free",
                plural(pinned.blocks.count, "block"),
                bytes(pinned.blocks.bytes),
                pinned.name(),
                bytes(pinned.free_bytes)
            )
        });
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            // The names replace the hint how to get them.
            advice.evidence.truncate(1);
            advice.evidence.extend(named);
        }
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, out)
    }

    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json::value(self))
    }
}
