//! Processes that this user may inspect, largest first.

use heapr_table::plain::is_harmless;
use std::fmt::Write as _;

/// Largest number of listed processes.
const LISTED_MAX: usize = 40;
/// Largest number of characters of a command line.
const COMMAND_CHARACTERS_MAX: usize = 100;

/// Lists processes, one per line: pid, resident memory, command line. `name`: text that the command
/// line must contain.
pub(crate) fn list(name: Option<&str>) -> String {
    let mut found: Vec<(u64, u32, String)> = heapr_proc::pids()
        .filter(|&pid| heapr_proc::executable(pid).is_ok())
        .filter_map(|pid| {
            Some((heapr_proc::resident_bytes(pid)?, pid, heapr_proc::command_line(pid).join(" ")))
        })
        .filter(|(_, _, command)| name.is_none_or(|name| command.contains(name)))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    let mut text = String::from("pid  resident  command\n");
    for (resident_bytes, pid, command) in found.iter().take(LISTED_MAX) {
        let mib = *resident_bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(text, "{pid}  {mib:.1} MiB  {}", shortened(command));
    }
    if found.len() > LISTED_MAX {
        let _ = writeln!(text, "… {} more: give a name", found.len() - LISTED_MAX);
    }
    text
}

fn shortened(command: &str) -> String {
    let letters = command.chars().take(COMMAND_CHARACTERS_MAX);
    letters.map(|letter| if is_harmless(letter) { letter } else { ' ' }).collect()
}

#[test]
fn this_process_is_listed_once() {
    let own = format!("{}  ", std::process::id());
    let program = std::env::args().next().unwrap();
    assert_eq!(list(Some(&program)).lines().filter(|line| line.starts_with(&own)).count(), 1);
    assert_eq!(list(Some("no process has this in its command line: \u{1}")).lines().count(), 1);
}
