//! Counts of fixed jobs: instructions, system calls, memory. They hardly depend on the load of the
//! machine. They are compared with `benches/counts.tsv` (release) and `benches/counts-debug.tsv`.

mod inputs;
mod jobs;
mod measure;
mod record;

use anyhow::{Context as _, bail};

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
        self.words.is_empty() || self.words.iter().any(|word| job.name.contains(word.as_str()))
    }
}

/// Measures the jobs and returns the table; an error if a count is above its line.
///
/// `HEAPR` names a program to measure instead of a build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let heapr = options.program()?;
    let inputs = Inputs::make(&heapr, if options.is_debug { &Scale::SMALL } else { &Scale::WHOLE })?;
    let name = if options.is_debug { "counts-debug.tsv" } else { "counts.tsv" };
    let path = crate::root().join("benches").join(name);
    let mut record = Record::read(&path)?;
    let (mut rows, mut above) = (Vec::new(), Vec::new());
    for job in JOBS.iter().filter(|job| options.is_chosen(job)) {
        let before = record.line(job.name);
        let counts = match least(job, &heapr, &inputs, before) {
            Ok(counts) => counts,
            // The first commit's program is older than some of the jobs.
            Err(error) if options.is_first => {
                eprintln!("{}: not measured: {error:#}", job.name);
                continue;
            }
            Err(error) => return Err(error).with_context(|| job.name),
        };
        eprintln!("{}: {counts}", job.name);
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

/// Counts a job up to three times while the counts are above their line: on a busy machine, waiting
/// for another process takes more checks.
fn least(job: &Job, heapr: &str, inputs: &Inputs, line: Option<&Line>) -> anyhow::Result<Counts> {
    let mut counts = measure::measure(job, heapr, inputs)?;
    for _ in 1..3 {
        if line.is_none_or(|line| line.counts.exceeded_by(&counts).is_none()) {
            break;
        }
        counts = counts.least(measure::measure(job, heapr, inputs)?);
    }
    Ok(counts)
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
