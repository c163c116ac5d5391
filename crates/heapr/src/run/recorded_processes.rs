//! Processes of a recording in the summary: the one with the most memory, then the others by
//! their programs. Wrappers (shells, version managers) would otherwise hide the program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use heapr_export::ProcessName;
use heapr_query::Metric;
use heapr_table::SortRows as _;
use heapr_table::quantity::{count, plural};
use heapr_trace::{Amounts, HeapId, Process, ProcessIndex, Totals, Trace};

use crate::report::amounts_text::amount;

/// Programs of the other processes that are named; the rest are counted.
const PROGRAMS_SHOWN: usize = 3;

/// Words about the processes of a recording.
pub(super) struct Told {
    /// Process with the most memory, and the number of the others.
    pub(super) short: String,
    /// Sentence with its amount, and with the programs of the others.
    pub(super) line: String,
}

/// Words about the processes; `None` if there is only one, or if nothing is known of their memory.
pub(super) fn told(trace: &Trace, by_heap: &[(ProcessIndex, HeapId, Totals)]) -> Option<Told> {
    let mut held: HashMap<ProcessIndex, Amounts> = HashMap::new();
    // Heaps have their peaks at different moments, so that a sum of peaks is the most that it was.
    // The pages of mappings hold the blocks of the other heaps, which would count twice.
    for (process, _, totals) in by_heap.iter().filter(|(_, heap, _)| *heap != HeapId::MMAP) {
        *held.entry(*process).or_default() += &totals.amounts();
    }
    text(trace.processes(), &held)
}

fn text(processes: &[Process], held: &HashMap<ProcessIndex, Amounts>) -> Option<Told> {
    let mut by_peak: Vec<(&Process, &Amounts)> = held
        .iter()
        .filter_map(|(process, amounts)| Some((processes.get(process.0 as usize)?, amounts)))
        .collect();
    by_peak.sort_rows_by_key(|(process, amounts)| {
        (Reverse(Metric::PeakBytes.of(amounts)), process.pid, process.start_ns)
    });
    let (first, amounts) = by_peak.first().filter(|_| processes.len() > 1)?;
    let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
    for process in processes.iter().filter(|process| !std::ptr::eq(*process, *first)) {
        *programs.entry(process.name()).or_default() += 1;
    }
    let mut programs: Vec<(&str, u64)> = programs.into_iter().collect();
    programs.sort_rows_by_key(|(name, number)| (Reverse(*number), *name));
    let more: u64 = programs.iter().skip(PROGRAMS_SHOWN).map(|(_, number)| number).sum();
    let named = programs.iter().take(PROGRAMS_SHOWN);
    let mut others: Vec<String> = named.map(|(name, number)| format!("{} {name}", count(*number))).collect();
    others.extend((more > 0).then(|| format!("{} more", count(more))));
    let next = by_peak.get(1).map(|(_, amounts)| {
        format!(", none with more than {} in blocks", amount(Metric::PeakBytes, amounts))
    });
    let (first, number) = (ProcessName::from(*first), plural((processes.len() - 1) as u64, "other"));
    let line = format!(
        "{first} had the most, {} in blocks at most; {number} ({}){}",
        amount(Metric::PeakBytes, amounts),
        others.join(", "),
        next.unwrap_or_default()
    );
    Some(Told { short: format!("{first} and {number}"), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, executable: &str) -> Process {
        Process {
            pid,
            parent_pid: 1,
            origin: heapr_trace::ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: executable.to_owned(),
            command_line: Vec::new(),
            exit_status: None,
        }
    }

    #[test]
    fn the_process_with_the_memory_comes_first_and_of_the_shells_there_is_a_count() {
        let peak = |bytes| Totals { peak_bytes: bytes, ..Totals::default() }.amounts();
        let mut processes: Vec<Process> = (0..79).map(|number| process(number + 2, "/bin/bash")).collect();
        processes.insert(40, process(900, "/usr/bin/python3.8"));
        processes.push(process(901, "/usr/bin/sed"));
        let held = HashMap::from([
            (ProcessIndex(0), peak(3 << 20)),
            (ProcessIndex(40), peak(30 << 20)),
            (ProcessIndex(41), peak(1 << 20)),
        ]);
        let told = text(&processes, &held).unwrap();
        assert_eq!(told.short, "python3.8 (900) and 80 others");
        assert_eq!(
            told.line,
            "python3.8 (900) had the most, 30.0 MiB in blocks at most; 80 others (79 bash, 1 sed), none with \
             more than 3.00 MiB in blocks"
        );
        assert!(text(&processes[..1], &held).is_none());
        assert!(text(&processes, &HashMap::new()).is_none());
    }
}
