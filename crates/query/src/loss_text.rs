//! Losses of a recording in words, for the command line and the page.

use heapr_trace::{Loss, Notice, Trace};

/// One line for each kind of loss, the gravest first. `count` formats a number.
#[must_use]
pub fn loss_warnings(loss: &Loss, count: impl Fn(u64) -> String) -> Vec<String> {
    let kinds = [
        (
            loss.events_lost,
            ["event was lost", "events were lost"],
            " (buffers full): the amounts below are too small",
        ),
        (loss.stacks_lost, ["stack was cut or lost", "stacks were cut or lost"], ""),
        (
            loss.events_late,
            ["event came late: its time was", "events came late: their times were"],
            " corrected",
        ),
        (
            loss.records_invalid,
            [
                "record made no sense: at least one event was",
                "records made no sense: at least so many events were",
            ],
            " lost, and the amounts below are wrong",
        ),
        (loss.processes_refused, ["process could not be traced", "processes could not be traced"], ""),
    ];
    kinds
        .into_iter()
        .filter(|(number, _, _)| *number > 0)
        .map(|(number, [one, many], rest)| {
            format!("{} {}{rest}", count(number), if number == 1 { one } else { many })
        })
        .collect()
}

/// Largest number of lines of [`notice_lines`]; the others are counted in one more line.
const NOTICES_SHOWN: usize = 8;

/// Remarks about the recordings of single processes, one line each. `duration` formats a time in
/// nanoseconds.
#[must_use]
pub fn notice_lines(trace: &Trace, duration: impl Fn(u64) -> String) -> Vec<String> {
    let notices = trace.notices();
    let line = |notice: &Notice| {
        let process = trace.processes().get(notice.process.0 as usize);
        let (name, pid) =
            process.map_or(("process", notice.process.0), |process| (process.name(), process.pid));
        // The remark is about the file, which another tool made.
        if pid == 0 {
            return notice.text.clone();
        }
        // The process ended before its name could be read.
        let name = if name.trim().is_empty() { "process" } else { name };
        format!("{name} ({pid}), at {}: {}", duration(notice.time_ns), notice.text)
    };
    let mut lines: Vec<String> = notices.iter().take(NOTICES_SHOWN).map(line).collect();
    let more = notices.len().saturating_sub(NOTICES_SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more of this kind (heapr info --format json lists them)"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_said_otherwise_than_many() {
        let said = |number| {
            let loss = Loss {
                events_lost: number,
                stacks_lost: number,
                events_late: number,
                records_invalid: number,
                processes_refused: number,
            };
            loss_warnings(&loss, |number| number.to_string())
        };
        assert!(said(0).is_empty());
        assert_eq!(
            said(1),
            [
                "1 event was lost (buffers full): the amounts below are too small",
                "1 stack was cut or lost",
                "1 event came late: its time was corrected",
                "1 record made no sense: at least one event was lost, and the amounts below are wrong",
                "1 process could not be traced",
            ]
        );
        assert_eq!(
            said(2),
            [
                "2 events were lost (buffers full): the amounts below are too small",
                "2 stacks were cut or lost",
                "2 events came late: their times were corrected",
                "2 records made no sense: at least so many events were lost, and the amounts below are wrong",
                "2 processes could not be traced",
            ]
        );
    }
}
