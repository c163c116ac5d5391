//! Counts the agent's instructions per event, which hardly depend on the load of the machine.
//!
//! Each program runs under Valgrind's callgrind, with the agent in it, once with less work and once
//! with more. The cost of start and end is in both, and cancels out in the difference.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use super::callgrind::agent_functions;
use super::inputs::{self, Program};
use super::overhead::cost_of;
use super::table::markdown;

/// Script that builds nested lists, dictionaries and JSON, as often as its argument says.
const PYTHON: &str = "
import json, sys
def tree(depth):
    return [tree(depth - 1), {str(depth): depth * 1.5}] if depth else (1,)
for _ in range(int(sys.argv[1])):
    text = json.dumps({str(k): [k, str(k), {'a': k}] for k in range(1500)})
    kept = (json.loads(text), tree(9))
    for part in sorted(text.split(',')):
        part.upper().replace('A', 'b').split('\"')
";

/// Measures and returns the table.
pub(crate) fn run() -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let mut rows = Vec::new();
    for [less, more] in cases()? {
        let (before, after) = (counted(&less, &heapr, &folder)?, counted(&more, &heapr, &folder)?);
        let events = after.events.saturating_sub(before.events) as f64;
        let per_event = |instructions: u64, base: u64| instructions.saturating_sub(base) as f64 / events;
        let mut functions: Vec<(&str, f64)> = after
            .functions
            .iter()
            .map(|(name, &count)| {
                (name.as_str(), per_event(count, before.functions.get(name).copied().unwrap_or(0)))
            })
            .collect();
        functions.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let total: f64 = functions.iter().map(|(_, count)| count).sum();
        let largest: Vec<String> =
            functions.iter().take(5).map(|(name, count)| format!("{} {count:.0}", short(name))).collect();
        eprintln!("{}: {total:.1}", more.name);
        rows.push(vec![more.name.into(), format!("{events}"), format!("{total:.1}"), largest.join(", ")]);
    }
    Ok(format!(
        "## Instructions of the agent\n\nBy callgrind, in the program's own threads: what more work takes, over what more events it records.\n\n{}",
        markdown(&["program", "events", "instructions per event", "of which in"], &rows)
    ))
}

/// Returns the programs, each with less work and with more.
fn cases() -> anyhow::Result<Vec<[Program; 2]>> {
    let programs = inputs::programs()?;
    let named = |name: &str| {
        programs.iter().find(|program| program.name == name).cloned().context("a program of the table")
    };
    let with = |program: &Program, change: &dyn Fn(&mut Program, u32), sizes: [u32; 2]| {
        sizes.map(|size| {
            let mut program = program.clone();
            change(&mut program, size);
            program
        })
    };
    let replace_from = |words: &mut Vec<String>, at: usize, new: &[&str]| {
        words.truncate(at);
        words.extend(new.iter().map(|&word| word.to_owned()));
    };
    let jq = |program: &mut Program, size: u32| {
        let filter =
            format!("[range({size}) | {{id: ., name: \"n\\(.)\"}}] | group_by(.id % 7) | map(length) | add");
        replace_from(&mut program.command, 1, &["-n", &filter]);
    };
    let python = |program: &mut Program, size: u32| {
        replace_from(&mut program.command, 1, &["-c", PYTHON, &size.to_string()]);
    };
    let stress = |program: &mut Program, size: u32| {
        replace_from(&mut program.command, 1, &[&size.to_string(), "2"]);
    };
    let redis = |program: &mut Program, size: u32| {
        if let Some(client) = &mut program.client
            && let Some(number) = client.work.iter().position(|word| word == "-n")
        {
            client.work[number + 1] = size.to_string();
        }
    };
    Ok(vec![
        with(&named("jq")?, &jq, [5_000, 50_000]),
        with(&named("python")?, &python, [2, 8]),
        with(&named("stress")?, &stress, [2_000, 20_000]),
        with(&named("redis")?, &redis, [4_000, 30_000]),
    ])
}

/// Counts of one run.
struct Counted {
    /// Number of events of the whole file.
    events: u64,
    /// Instructions of each of the agent's functions.
    functions: BTreeMap<String, u64>,
}

fn counted(program: &Program, heapr: &str, folder: &Path) -> anyhow::Result<Counted> {
    let (trace, counts) = (folder.join("instructions.heapr"), folder.join("instructions.callgrind"));
    // Without address space randomization: the time for the agent's table searches depends on
    // addresses.
    let prefix = [
        "setarch",
        "-R",
        heapr,
        "run",
        "--quiet",
        "-f",
        "-o",
        &trace.display().to_string(),
        "--",
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        &format!("--callgrind-out-file={}", counts.display()),
    ]
    .map(str::to_owned);
    let command = [prefix.to_vec(), program.command.clone()].concat();
    cost_of(&command, &program.environment, program.client.as_ref(), &folder.join("log"))
        .with_context(|| program.name)?;
    let mut info = std::process::Command::new(heapr);
    let info = crate::output_of(info.args(["info", "--format", "json"]).arg(&trace))?;
    let info: serde_json::Value = serde_json::from_str(&info)?;
    let events = info["event_count"].as_u64().context("the number of events")?;
    let text = std::fs::read_to_string(&counts).with_context(|| counts.display().to_string())?;
    Ok(Counted { events, functions: agent_functions(&text) })
}

/// Returns a function's name without the crate's.
fn short(name: &str) -> &str {
    name.strip_prefix("heapr_agent::").unwrap_or(name)
}
