//! `heapr snapshot paths`: the ways in which an object is held.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{Naming, PathStep, RetainingPaths, retaining_paths};
use serde_json::{Value, json};

use super::opening::{node_of, open, parse_id};
use crate::commands::report::Format;
use crate::report::csv::quoted;
use crate::report::frame_text::printable;

/// Arguments of `heapr snapshot paths`.
#[derive(Debug, clap::Args)]
pub(crate) struct PathsArguments {
    /// The snapshot; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object
    #[arg(value_name = "@ID", value_parser = parse_id)]
    id: u64,
    /// Leave out the ways that pass this object
    #[arg(long, value_name = "@ID", value_parser = parse_id)]
    ignore: Vec<u64>,
    /// Most ways
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(arguments: PathsArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let naming = Naming::of(&heap);
    let node = node_of(&heap, arguments.id)?;
    let ignored: Vec<u32> =
        arguments.ignore.iter().map(|&id| node_of(&heap, id)).collect::<anyhow::Result<_>>()?;
    let found = retaining_paths(&heap, &naming, node, &ignored, arguments.top);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.format {
        Format::Text => write_text(&mut out, &found)?,
        Format::Json => {
            let paths: Vec<Value> = found.paths.iter().map(|path| path_json(path)).collect();
            let schema = "heapr-snapshot-paths-1";
            writeln!(out, "{:#}", json!({ "schema": schema, "paths": paths, "is_cut": found.is_cut }))?;
        }
        Format::Csv => write_csv(&mut out, &found)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_text(out: &mut impl Write, found: &RetainingPaths) -> std::io::Result<()> {
    if found.paths.is_empty() {
        writeln!(out, "no strong reference leads from a root to it")?;
    }
    for (number, path) in found.paths.iter().enumerate() {
        writeln!(out, "{}{}. {} steps", if number > 0 { "\n" } else { "" }, number + 1, path.len() - 1)?;
        for line in path_lines(path) {
            writeln!(out, "   {line}")?;
        }
    }
    if found.is_cut {
        writeln!(out, "\nthere are more ways than were looked at")?;
    }
    Ok(())
}

/// A line for each object, with how the one before holds it.
pub(super) fn path_lines(path: &[PathStep]) -> Vec<String> {
    path.iter()
        .enumerate()
        .map(|(depth, step)| {
            let place = step.place.as_ref().map(|place| format!("  {place}")).unwrap_or_default();
            let held = match (depth, step.held_as.is_empty()) {
                (0, _) => String::new(),
                (_, true) => "-> ".to_owned(),
                (_, false) => format!("{} -> ", printable(&step.held_as)),
            };
            format!("{held}{} @{}{}", printable(&step.name), step.id, printable(&place))
        })
        .collect()
}

pub(super) fn path_json(path: &[PathStep]) -> Value {
    path.iter()
        .map(|step| {
            json!({
                "name": step.name,
                "id": step.id,
                "held_as": step.held_as,
                "place": step.place.as_ref().map(ToString::to_string),
            })
        })
        .collect()
}

fn write_csv(out: &mut impl Write, found: &RetainingPaths) -> std::io::Result<()> {
    writeln!(out, "path,step,id,name,held_as,place")?;
    for (number, path) in found.paths.iter().enumerate() {
        for (depth, step) in path.iter().enumerate() {
            let place = step.place.as_ref().map(ToString::to_string).unwrap_or_default();
            writeln!(
                out,
                "{},{depth},{},{},{},{}",
                number + 1,
                step.id,
                quoted(&step.name),
                quoted(&step.held_as),
                quoted(&place)
            )?;
        }
    }
    Ok(())
}
