//! Counts of fixed jobs: instructions, system calls, memory. They hardly depend on the load of the
//! machine. They are compared with `benches/counts.tsv` (release) and `benches/counts-debug.tsv`.

mod inputs;
mod jobs;
mod measure;
mod record;

use std::process::Command;

use anyhow::{Context as _, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use inputs::{Inputs, Scale};
use jobs::{JOBS, Job};
use record::{Counts, Line, Record};

use super::table::markdown;

/// Options of `cargo xtask bench counts`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// True if the counts are written as the reference for later ones.
    is_written: bool,
    /// True if the counts are written as those of the first commit, with which all are compared.
    is_first: bool,
    /// True if the build without optimization is measured, on smaller inputs. The check of each
    /// commit has built it already.
    is_debug: bool,
    /// Words of the names of the measured jobs; empty: all.
    words: Vec<String>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Self {
        let mut options = Self::default();
        for word in words {
            match *word {
                "--write" => options.is_written = true,
                "--first" => options.is_first = true,
                "--debug" => options.is_debug = true,
                word => options.words.push(word.to_owned()),
            }
        }
        options
    }

    /// Returns the program to be measured.
    fn program(&self) -> anyhow::Result<String> {
        if let Ok(heapr) = std::env::var("HEAPR") {
            return Ok(heapr);
        }
        let release = (!self.is_debug).then_some("--release");
        crate::run(crate::cargo().arg("build").args(release).args(["--quiet", "--package", "heapr"]))?;
        let folder = if self.is_debug { "debug" } else { "release" };
        let path = crate::check_agent::target_folder()?.join(folder).join("heapr");
        Ok(path.display().to_string())
    }

    fn is_chosen(&self, job: &Job) -> bool {
        let is_named = |word: &String| job.name.contains(word.as_str());
        (job.is_checked() || !self.is_debug) && (self.words.is_empty() || self.words.iter().any(is_named))
    }
}

/// Measures the jobs and returns the table; an error if a count is above its line.
///
/// `HEAPR` names a program to measure instead of a build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let name = if options.is_debug { "counts-debug.tsv" } else { "counts.tsv" };
    let path = crate::root().join("benches").join(name);
    let mut record = Record::read(&path)?;
    let makers = makers()?;
    let is_other = !record.makers.is_empty() && record.makers != makers;
    if options.is_written {
        if is_other && !options.words.is_empty() {
            bail!("the lines were measured with {}: all of them must be measured anew", record.makers);
        }
        record.makers.clone_from(&makers);
    } else if is_other && !options.is_first {
        println!(
            "benches/{name} was measured with {}\nthis machine has {makers}\ncounts of these cannot be \
             compared: nothing is judged (`--write` measures the lines anew)",
            record.makers
        );
        return Ok(String::new());
    }
    let heapr = options.program()?;
    let inputs = Inputs::make(&heapr, if options.is_debug { &Scale::SMALL } else { &Scale::WHOLE })?;
    let (mut rows, mut above) = (Vec::new(), Vec::new());
    for job in JOBS.iter().filter(|job| options.is_chosen(job)) {
        let before = record.line(job.name);
        let before_s = processor_seconds()?;
        let mut counts = match least(job, &inputs, before) {
            Ok(counts) => counts,
            // The first commit's program is older than some of the jobs.
            Err(error) if options.is_first => {
                eprintln!("{}: not measured: {error:#}", job.name);
                continue;
            }
            Err(error) => return Err(error).with_context(|| job.name),
        };
        if options.is_debug {
            // Most of it is the program's own file, as far as it was in the memory already.
            counts.peak_kib = None;
            // What a program asks while it waits for a slow recorder.
            counts.system_calls = counts.system_calls.filter(|_| !job.is_of_program());
        }
        eprintln!("{}: {counts} ({:.1} s)", job.name, processor_seconds()? - before_s);
        above.extend(before.and_then(|line| line.counts.exceeded_by(&counts)).map(|what| (job.name, what)));
        rows.push(record::row(job.name, before, &counts));
        if options.is_first {
            record.set_first(job.name, &counts);
        } else if options.is_written {
            record.set(job.name, counts);
        }
    }
    if options.is_written || options.is_first {
        record.write(&path)?;
        return Ok(table(&rows));
    }
    if above.is_empty() {
        return Ok(table(&rows));
    }
    println!("{}", table(&rows));
    let lines: Vec<String> = above.iter().map(|(name, what)| format!("  {name}: {what}")).collect();
    bail!(
        "more than benches/{name} allows:\n{}\nmake it cheaper, or change its line \
         (`cargo xtask bench counts{} --write NAME`) with the reason in the commit",
        lines.join("\n"),
        if options.is_debug { " --debug" } else { "" }
    )
}

/// Returns the facts that counts depend on beside heapr: compiler, C library, and the tools that
/// count or make inputs. The processor's features that Valgrind shows to programs follow.
fn makers() -> anyhow::Result<String> {
    let mut all = Vec::new();
    for tool in ["rustc", "gcc", "ldd", "valgrind", "strace"] {
        let text = crate::output_of(Command::new(tool).arg("--version"))?;
        all.push(text.lines().next().unwrap_or_default().trim().to_owned());
    }
    let facts = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let flags = facts.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &&str| flags.split(' ').any(|word| word == *flag);
    all.push(format!("{} processors", std::thread::available_parallelism()?));
    all.push(
        ["avx2", "bmi2", "rdrand", "rdseed", "f16c", "rtm"]
            .into_iter()
            .filter(has)
            .collect::<Vec<_>>()
            .join(" "),
    );
    Ok(all.join(", "))
}

/// Counts of a job, measured up to three times while they are above their line. On a busy machine a
/// process that waits for another one looks for it more often.
fn least(job: &Job, inputs: &Inputs, line: Option<&Line>) -> anyhow::Result<Counts> {
    let mut counts = measure::measure(job, inputs)?;
    for _ in 1..3 {
        if line.is_none_or(|line| line.counts.exceeded_by(&counts).is_none()) {
            break;
        }
        counts = counts.least(measure::measure(job, inputs)?);
    }
    Ok(counts)
}

/// Processor time of what was run so far, in s: where others work, too, a job's time says nothing.
fn processor_seconds() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn table(rows: &[Vec<String>]) -> String {
    let heading =
        ["job", "instructions", "of the first", "of the line", "system calls", "peak KiB", "of the line"];
    format!("## Counts\n\n{}", markdown(&heading, rows))
}

impl Counts {
    /// Returns the smaller one of each count.
    fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            instructions: least(self.instructions, other.instructions),
            system_calls: least(self.system_calls, other.system_calls),
            peak_kib: least(self.peak_kib, other.peak_kib),
        }
    }

    /// Returns a description of the counts of `now` that exceed these by more than is allowed.
    fn exceeded_by(&self, now: &Self) -> Option<String> {
        let checks = [
            ("instructions", self.instructions, now.instructions, record::INSTRUCTIONS_ALLOWED),
            ("system calls", self.system_calls, now.system_calls, record::SYSTEM_CALLS_ALLOWED),
            ("peak KiB", self.peak_kib, now.peak_kib, record::PEAK_ALLOWED),
        ];
        let over: Vec<String> = checks
            .into_iter()
            .filter_map(|(what, line, now, allowed)| Some((what, line?, now?, allowed)))
            .filter(|&(_, line, now, allowed)| now as f64 > line as f64 * allowed)
            .map(|(what, line, now, _)| format!("{now} {what}, {line} are allowed"))
            .collect();
        (!over.is_empty()).then(|| over.join("; "))
    }
}
