//! `cargo xtask matrix [--install] [--small] [NAME…]`: real programs under `heapr run` and
//! `heapr start --pid`, and what of their memory is explained. Writes `docs/coverage.md`; with
//! names, or the small ones alone, prints only their rows.
//!
//! ```text
//! programs.txt  the table      rows  reads it      place  installs and builds
//! recorded      one program    mod   all of them, and the page
//! ```

mod place;
mod recorded;
mod rows;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::bail;

use place::Place;
use recorded::{Row, Way};
use rows::Program;

pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| !["--install", "--small"].contains(option)) {
        bail!("no such option: {unknown}");
    }
    let is_small = options.contains(&"--small");
    let programs = rows::programs()?;
    let is_chosen = |program: &&Program| {
        (names.is_empty() || names.contains(&program.name.as_str())) && (!is_small || program.is_small)
    };
    let chosen: Vec<Program> = programs.iter().filter(is_chosen).cloned().collect();
    let place = Place::new()?;
    if options.contains(&"--install") {
        place.install(&chosen)?;
    }
    let heapr =
        std::env::var_os("HEAPR").map_or_else(|| crate::root().join("target/debug/heapr"), PathBuf::from);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for program in &chosen {
        let mut is_here = false;
        // An attach takes seconds.
        for way in [Way::Run, Way::Attach].into_iter().take(if is_small { 1 } else { 2 }) {
            if let Some(row) = recorded::row(program, way, &place, &heapr)? {
                println!("{}", line_of(&row));
                is_here = true;
                rows.push(row);
            }
        }
        if !is_here {
            left_out.push(program.name.as_str());
        }
    }
    let bad: Vec<&str> =
        rows.iter().filter(|row| row.is_harmed || row.is_silent()).map(|row| row.name.as_str()).collect();
    if names.is_empty() && !is_small {
        std::fs::write(crate::root().join("docs/coverage.md"), text_of(&rows, &left_out))?;
    } else if !bad.is_empty() {
        bail!("harmed, or silent: {}", bad.join(", "));
    }
    for name in left_out {
        println!("not run: {name} is not here");
    }
    Ok(())
}

fn line_of(row: &Row) -> String {
    let share = |part: u64, all: u64| match all {
        0 => "–".to_owned(),
        all => format!("{:.0} %", (part.min(all) as f64 / all as f64 * 100.0).floor()),
    };
    let harm = if row.is_harmed { "**yes**" } else { "no" };
    let seen = row.anonymous_bytes.saturating_sub(row.unseen_bytes);
    format!(
        "| {} | {} | {} | {} | {:.1} | {} | {} | {} | {harm} | {} |",
        row.name,
        row.kind,
        row.way,
        row.events,
        row.anonymous_bytes as f64 / f64::from(1 << 20),
        share(row.explained_bytes, row.anonymous_bytes),
        share(seen, row.anonymous_bytes),
        share(row.named.0, row.named.1),
        message(row)
    )
}

/// What is said, without what changes from run to run.
fn message(row: &Row) -> String {
    let text = row.message.replace('|', "\\|");
    let text = text.split_once("MiB of its").map_or(text.clone(), |(before, rest)| {
        let mib = before.rsplit(' ').find(|word| !word.is_empty()).unwrap_or_default();
        format!("{mib} MiB of its{rest}")
    });
    let is_silent = if row.is_silent() { "**silent** " } else { "" };
    format!("{is_silent}{text}")
}

fn text_of(rows: &[Row], left_out: &[&str]) -> String {
    let count = |is_so: fn(&Row) -> bool| rows.iter().filter(|row| is_so(row)).count();
    let mut text = format!(
        "# What is seen of real programs\n\n\
         Made by `cargo xtask matrix`, which installs the programs (`--install`), runs them, or attaches to them.\n\n\
         * *Memory*: anonymous memory of the largest process when it was most, without what heapr itself needs there, in MiB. A process that\n  \
         never has 3 MiB of its own is not looked at: `–`.\n\
         * *Explained*: the share of it that is recorded blocks, free memory of their allocator, data, stacks, a mapping of which it is known who made\n  \
         it, or the heap of a runtime, by its name.\n\
         * *In blocks*: the same without mappings and heaps of runtimes. The rest is not seen block by block, and a warning says so.\n\
         * *Named*: of the recorded bytes at the peak, those whose stack has three named frames outside of the C library and C++'s.\n\n\
         {} rows: {} explained to 95 % or more, {} seen whole (less than a tenth, or 3 MiB, in no block), {} silent, {} harmed, {} lost events.\n\n\
         | program | kind | way | events | memory | explained | in blocks | named | harm | what is said |\n\
         |---|---|---|---:|---:|---:|---:|---:|---|---|\n",
        rows.len(),
        count(Row::is_explained),
        count(Row::is_whole),
        count(Row::is_silent),
        count(|row| row.is_harmed),
        count(|row| row.lost > 0),
    );
    for row in rows {
        let _ = writeln!(text, "{}", line_of(row));
    }
    if !left_out.is_empty() {
        let _ = writeln!(text, "\nNot here when it was made: {}.", left_out.join(", "));
    }
    text
}
