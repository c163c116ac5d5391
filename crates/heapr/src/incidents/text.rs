//! Incidents as text. Names in them come from programs, and stay within their line.

use heapr_incident::{Incident, StoreError, Summary, clock_text, unix_ns};
use heapr_table::plain::printable;
use heapr_table::quantity::{bytes, bytes_within, plural};

use crate::plain_text::one_line;

/// Number of holders and of lines of the account that are shown.
const HOLDERS_SHOWN: usize = 10;

/// Prints a line for each incident.
pub(super) fn list(all: &[Summary]) {
    if all.is_empty() {
        say!("no incident");
    }
    for (number, read) in all {
        let (time, what) = line(read);
        say!("{}", one_line(&format!("{number:>4}  {time:<19}  {what}")));
    }
}

/// Time of an incident, and its first sentence.
pub(super) fn line(read: &Result<Incident, StoreError>) -> (String, String) {
    match read {
        Ok(incident) => {
            let sentence = incident.sentences.first().cloned().unwrap_or_default();
            (clock_text(incident.time_unix_ns, unix_ns()), sentence)
        }
        Err(error) => (String::new(), error.to_string()),
    }
}

/// Prints the report of an incident.
pub(super) fn incident(incident: &Incident) {
    for sentence in &incident.sentences {
        say!("{}", printable(sentence));
    }
    if !incident.holders.is_empty() {
        say!("");
        say!("held by:");
    }
    for holder in incident.holders.iter().take(HOLDERS_SHOWN) {
        let blocks =
            holder.block_count.map(|count| format!(" in {}", plural(count, "block"))).unwrap_or_default();
        say!(
            "  {}{blocks}  {}",
            bytes_within(holder.bytes, holder.bytes_plus_minus),
            printable(&holder.name)
        );
    }
    if let Some(account) = &incident.account {
        say!("");
        let when = clock_text(account.read_unix_ns, incident.time_unix_ns);
        say!("resident of process {} at {when}: {}", account.pid, bytes(account.rss_bytes));
        for line in account.lines.iter().take(HOLDERS_SHOWN) {
            say!("  {}  {}", bytes(line.bytes), printable(&line.label));
        }
    }
    for (title, lines) in [("evidence:", &incident.cause.evidence), ("not known:", &incident.unknown)] {
        if !lines.is_empty() {
            say!("");
            say!("{title}");
            lines.iter().for_each(|line| say!("  {}", printable(line)));
        }
    }
    if let Some(file) = incident.recording.as_ref().and_then(|recording| recording.file.as_ref()) {
        say!("");
        say!("recording: {}, beside the incident", printable(file));
    }
}
