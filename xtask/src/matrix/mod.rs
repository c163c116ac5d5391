//! Records real programs with `heapr run` and `heapr start --pid`, and measures how much of their
//! memory is explained. `cargo xtask matrix [--install] [--small] [--merge] [NAME…]` writes
//! `docs/coverage.md`. With names, or with the small ones alone, it prints only their rows, or
//! merges them into the page (`--merge`).
//!
//! ```text
//! programs.txt  the table      rows  reads it      place  installs and builds
//! recorded      one program    page  all of them   mod    which, and in which order
//! ```

mod page;
mod place;
mod recorded;
mod rows;

use std::path::PathBuf;

use anyhow::bail;

use page::{Line, Page};
use place::Place;
use recorded::Way;
use rows::Program;

pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| !["--install", "--small", "--merge"].contains(option))
    {
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
    let (mut rows, mut lines, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for program in &chosen {
        let mut is_here = false;
        // An attach takes seconds.
        for way in [Way::Run, Way::Attach].into_iter().take(if is_small { 1 } else { 2 }) {
            if let Some(row) = recorded::row(program, way, &place, &heapr)? {
                let line = Line::of(&row);
                println!("{}", line.text());
                is_here = true;
                lines.push(line);
                rows.push(row);
            }
        }
        if !is_here {
            left_out.push(program.name.as_str());
        }
    }
    let bad: Vec<&str> =
        rows.iter().filter(|row| row.is_harmed || row.is_silent()).map(|row| row.name.as_str()).collect();
    let is_merge = options.contains(&"--merge");
    if is_merge || names.is_empty() && !is_small {
        let file = crate::root().join("docs/coverage.md");
        let known = if is_merge { std::fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let mut page = Page::read(&known);
        page.merge(&lines, &programs);
        std::fs::write(&file, page.text(&programs))?;
    } else if !bad.is_empty() {
        bail!("harmed, or silent: {}", bad.join(", "));
    }
    for name in left_out {
        println!("not run: {name} is not here");
    }
    Ok(())
}
