//! `heapr doctor`: what works on this machine for this user, and what to change for the rest.

mod check;
mod inside;
mod surroundings;
mod tracing;
mod watching;

use heapr_table::json_text::json_lines;
use std::io::Write as _;
use std::process::ExitCode;

use check::{Check, State};
use serde_json::json;

/// Arguments of `heapr doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    /// Tell which allocators are in this process, and whether they can be recorded
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: schema heapr.doctor/1
    Json,
}

/// Runs all checks; ends with status 1 if something does not work at all.
pub(crate) fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let checks = match arguments.pid {
        Some(pid) => inside::checks(pid)?,
        None => [tracing::checks(), surroundings::checks(), watching::checks()].concat(),
    };
    let text = match arguments.format {
        Format::Text => text_of(&checks),
        Format::Json => json_lines(&json_of(&checks)) + "\n",
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let has_failed = checks.iter().any(|check| check.state == State::No);
    Ok(if has_failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Formats a line for each check, with its advice below.
fn text_of(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.topic.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        text += &format!("{:<8} {:<width$}  {}\n", check.state.name(), check.topic, check.found);
        if !check.advice.is_empty() {
            text += &format!("{:<8} {:<width$}  -> {}\n", "", "", check.advice);
        }
    }
    text
}

fn json_of(checks: &[Check]) -> serde_json::Value {
    let of = |check: &Check| {
        json!({
            "topic": check.topic,
            "state": check.state.name(),
            "found": check.found,
            "advice": if check.advice.is_empty() { None } else { Some(&check.advice) },
        })
    };
    json!({ "schema": "heapr.doctor/1", "checks": checks.iter().map(of).collect::<Vec<_>>() })
}
