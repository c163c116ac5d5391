//! An incident as a page of Markdown.

use std::fmt::Write as _;

use heapr_table::plain::harmless;
use heapr_table::quantity::{bytes, bytes_within, count, signed_bytes};

use crate::incident::{GroupFacts, Incident};
use crate::wall_clock::clock_text;

/// Writes an incident as Markdown.
#[must_use]
pub fn markdown(incident: &Incident) -> String {
    let mut text = format!("# Incident {}\n\n", incident.number);
    for sentence in &incident.sentences {
        let _ = writeln!(text, "{}\n", escaped(sentence));
    }
    holders(incident, &mut text);
    account(incident, &mut text);
    if let Some(group) = &incident.group {
        self::group(group, &mut text);
    }
    course(incident, &mut text);
    list("Evidence", &incident.cause.evidence, &mut text);
    list("Not known", &incident.unknown, &mut text);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Text without a meaning in Markdown or HTML: names come from programs.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '~' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' => {
                out.extend(['\\', character])
            }
            character => out.push(harmless(character)),
        }
    }
    out
}

fn holders(incident: &Incident, text: &mut String) {
    if incident.holders.is_empty() {
        return;
    }
    text.push_str("| holder | bytes | blocks | a minute |\n|---|---:|---:|---:|\n");
    for holder in &incident.holders {
        let blocks = holder.block_count.map(count).unwrap_or_default();
        let rate = holder.bytes_per_minute.map(|rate| signed_bytes(rate.into())).unwrap_or_default();
        let amount = bytes_within(holder.bytes, holder.bytes_plus_minus);
        let _ = writeln!(text, "| {} | {amount} | {blocks} | {rate} |", escaped(&holder.name));
    }
    text.push('\n');
}

fn account(incident: &Incident, text: &mut String) {
    let Some(account) = &incident.account else { return };
    let when = clock_text(account.read_unix_ns, incident.time_unix_ns);
    let _ = writeln!(text, "Resident of process {} at {when}: {}\n", account.pid, bytes(account.rss_bytes));
    text.push_str("| part | resident |\n|---|---:|\n");
    for line in &account.lines {
        let _ = writeln!(text, "| {} | {} |", escaped(&line.label), bytes(line.bytes));
    }
    text.push('\n');
}

fn group(group: &GroupFacts, text: &mut String) {
    let _ = writeln!(text, "Control group {}\n", escaped(&group.path));
    text.push_str("| part | bytes |\n|---|---:|\n");
    let parts = [
        ("limit", group.limit_bytes),
        ("usage", group.usage_bytes),
        ("anonymous", Some(group.anonymous_bytes)),
        ("files", Some(group.file_bytes)),
        ("tmpfs and shared memory", Some(group.shared_memory_bytes)),
        ("socket buffers", Some(group.socket_bytes)),
        ("other memory of the kernel", Some(group.kernel_bytes)),
        ("swapped out", Some(group.swapped_bytes)),
    ];
    for (name, amount) in parts {
        let amount = amount.map_or_else(|| "unknown".to_owned(), bytes);
        let _ = writeln!(text, "| {name} | {amount} |");
    }
    for process in &group.processes {
        let _ =
            writeln!(text, "| {} ({}) | {} |", escaped(&process.name), process.pid, bytes(process.rss_bytes));
    }
    text.push('\n');
}

fn course(incident: &Incident, text: &mut String) {
    /// Number of moments in the table.
    const ROWS: usize = 20;
    let points = incident.course.points();
    if points.len() < 2 {
        return;
    }
    text.push_str("| time | usage | cannot be taken back |\n|---|---:|---:|\n");
    let step = points.len().div_ceil(ROWS);
    // The last moment counts most.
    let first = (points.len() - 1) % step;
    for point in points.iter().skip(first).step_by(step) {
        let when = clock_text(point.unix_ns, incident.time_unix_ns);
        let _ = writeln!(text, "| {when} | {} | {} |", bytes(point.usage_bytes), bytes(point.held_bytes));
    }
    text.push('\n');
}

fn list(title: &str, lines: &[String], text: &mut String) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:\n");
    for line in lines {
        let _ = writeln!(text, "* {}", escaped(line));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{Holder, ProcessNamed};

    #[test]
    fn names_from_programs_are_text_and_unknown_amounts_are_unknown() {
        let incident = Incident {
            number: 3,
            process: ProcessNamed { pid: 1, name: "a|b".to_owned(), ..ProcessNamed::default() },
            sentences: vec!["<script>x</script> was killed.".to_owned()],
            holders: vec![Holder { name: "f(a|b)\n| x".to_owned(), bytes: 2048, ..Holder::default() }],
            group: Some(GroupFacts { path: "/a_b".to_owned(), ..GroupFacts::default() }),
            unknown: vec!["what *it* did".to_owned(), "~~~\u{202e}".to_owned()],
            ..Incident::default()
        };
        let text = markdown(&incident);
        assert!(text.starts_with("# Incident 3\n\n\\<script\\>x\\</script\\> was killed.\n"), "{text}");
        assert!(text.contains("| f(a\\|b)\u{fffd}\\| x | 2.00 KiB |  |  |"), "{text}");
        assert!(text.ends_with("* \\~\\~\\~\u{fffd}\n"), "{text}");
        assert!(text.contains("| limit | unknown |") && text.contains("* what \\*it\\* did"), "{text}");
    }
}
