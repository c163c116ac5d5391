//! Resident memory that is of mapped files: no allocation has it.

use heapr_query::{Confidence, file_name};
use heapr_table::quantity::{bytes, duration, percent, plural};
use heapr_trace::{MemoryReading, ProcessIndex, ResidentFile, ResidentSample, Trace};

use crate::finding::{Finding, Kind, quoted};
use crate::recording::Recording;

/// Smallest resident part of files that is reported: in bytes, and as a share of the resident set.
const FILES_MIN_BYTES: u64 = 32 << 20;
const FILES_MIN_SHARE: f64 = 0.5;
/// Smallest share of the files' pages that the kernel must count as files', and not as shared
/// memory.
const ON_DISK_SHARE: f64 = 0.75;
/// Smallest share of the files for one that is named by itself, and largest number of such files.
const NAMED_SHARE: f64 = 0.1;
const NAMED_MAX: usize = 3;
/// Number of files at which the recorder cuts the list of a reading.
const LISTED_MAX: usize = 16;

/// Finding about the process with the largest resident set, at the reading with most of it in
/// files. Files that it gives back before the end of its work are not told.
pub(crate) fn mapped_files(recording: &Recording<'_>) -> Option<Finding> {
    let samples = recording.trace.resident_samples().iter();
    let process = samples.max_by_key(|sample| sample.rss_bytes())?.process;
    let readings = recording.trace.memory_readings().iter().filter(|reading| reading.process == process);
    let reading = readings.max_by_key(|reading| file_bytes(reading))?;
    let sample = sample_near(recording.trace, reading)?;
    let all = file_bytes(reading);
    if last_sample(recording, process)?.file_bytes < all / 2 {
        return None;
    }
    // Files in memory are no pages that the kernel can take back.
    if (sample.file_bytes as f64) < all as f64 * ON_DISK_SHARE {
        return None;
    }
    let resident = sample.rss_bytes().max(all);
    if !is_worth_telling(all, resident) {
        return None;
    }
    let [first, others @ ..] = &reading.files[..] else { return None };
    let whose = match others.is_empty() {
        true => format!("{}, of which {} are mapped", first.path, bytes(first.mapped_bytes)),
        false => format!("{}, {} of them of {}", count_text(reading), bytes(first.bytes), first.path),
    };
    let mut evidence = vec![
        "no allocation has them: they are the pages of files that the program has mapped and read; who maps a file is \
         not recorded"
            .to_owned(),
        "the kernel takes such pages back when memory is short; madvise(MADV_DONTNEED) or munmap gives them back at \
         once"
            .to_owned(),
    ];
    evidence.extend(named(others, all));
    Some(Finding {
        kind: Kind::Resident,
        sentence: format!(
            "Mapped files are resident: {} of the {} that are resident after {}{} are pages of {whose}.",
            bytes(all),
            bytes(resident),
            duration(reading.time_ns),
            in_process(recording.trace, process),
        ),
        confidence: Confidence::Medium,
        bytes: all,
        evidence,
        command: format!("heapr explain {}", quoted(&recording.file)),
        ..Finding::default()
    })
}

fn file_bytes(reading: &MemoryReading) -> u64 {
    reading.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
}

fn is_worth_telling(bytes: u64, resident: u64) -> bool {
    bytes >= FILES_MIN_BYTES && bytes as f64 >= resident as f64 * FILES_MIN_SHARE
}

fn count_text(reading: &MemoryReading) -> String {
    match reading.files.len() {
        LISTED_MAX.. => format!("the {} largest files", reading.files.len()),
        number => plural(number as u64, "file"),
    }
}

/// Name of a process in the sentence; empty if the recording has no other.
fn in_process(trace: &Trace, process: ProcessIndex) -> String {
    let known = trace.processes().get(process.0 as usize).filter(|_| trace.processes().len() > 1);
    known.map_or(String::new(), |known| {
        format!(" in {} (process {})", file_name(&known.executable), known.pid)
    })
}

/// Last counters of a process before the end of its work.
fn last_sample<'t>(recording: &Recording<'t>, process: ProcessIndex) -> Option<&'t ResidentSample> {
    let work = recording.processes.get(process.0 as usize);
    let until_ns = work.and_then(|work| work.until_ns(&recording.times_ns)).unwrap_or(u64::MAX);
    let samples = recording.trace.resident_samples().iter();
    let of_it = samples.filter(|sample| sample.process == process && sample.time_ns <= until_ns);
    of_it.max_by_key(|sample| sample.time_ns)
}

/// Sentence about further files with much of the memory.
fn named(others: &[ResidentFile], all: u64) -> Option<String> {
    let is_large = |file: &&ResidentFile| file.bytes as f64 >= all as f64 * NAMED_SHARE;
    let told = others.iter().filter(is_large).take(NAMED_MAX);
    let told: Vec<String> = told
        .map(|file| {
            format!("{} of {} ({})", bytes(file.bytes), file_name(&file.path), percent(file.bytes, all))
        })
        .collect();
    (!told.is_empty()).then(|| format!("then {}", told.join(", ")))
}

/// Counters of the process nearest to a reading.
fn sample_near<'t>(trace: &'t Trace, reading: &MemoryReading) -> Option<&'t ResidentSample> {
    let samples = trace.resident_samples().iter().filter(|sample| sample.process == reading.process);
    samples.min_by_key(|sample| sample.time_ns.abs_diff(reading.time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn files_are_told_where_they_are_most_of_the_memory() {
        assert!(is_worth_telling(236 * MIB, 247 * MIB));
        assert!(!is_worth_telling(236 * MIB, 900 * MIB), "the memory is elsewhere");
        assert!(!is_worth_telling(20 * MIB, 30 * MIB), "little");
        assert!(!is_worth_telling(0, 0));
    }

    #[test]
    fn a_list_that_was_cut_has_the_largest_files() {
        let of = |count: usize| MemoryReading {
            files: vec![ResidentFile::default(); count],
            ..MemoryReading::default()
        };
        assert_eq!(count_text(&of(3)), "3 files");
        assert_eq!(count_text(&of(LISTED_MAX)), "the 16 largest files");
    }

    #[test]
    fn only_large_ones_of_further_files_are_named() {
        let file =
            |path: &str, mib: u64| ResidentFile { path: path.to_owned(), bytes: mib * MIB, mapped_bytes: 0 };
        assert_eq!(named(&[file("/a/one", 5)], 100 * MIB), None);
        let said = named(&[file("/a/one", 30), file("/a/two", 5)], 100 * MIB);
        assert_eq!(said.as_deref(), Some("then 30.0 MiB of one (30.0 %)"));
    }
}
