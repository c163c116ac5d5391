//! `heapr explain --where`: the breakdown of a recording's memory at a moment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use heapr_explore::Explorer;
use heapr_filters::FilterArguments;
use heapr_findings::{LiveBlocks, WhereItIs};
use heapr_query::Moment;
use heapr_session::{Answer as SessionAnswer, Request};
use heapr_table::json_text::json_lines;
use heapr_table::quantity::{bytes, bytes_within, duration, plural_within, share};
use heapr_table::{Cell, Column, Table, row};
use serde_json::json;

use super::arguments::{ExplainArguments, Form};
use super::elapsed_line::ElapsedLine;
use super::printed_table::write_table;
use super::target::{Target, client};
use crate::report::names::TraceNames;
use crate::trace_file::{open, other_builds};

/// Writes where the memory of each recording is.
pub(super) fn write(
    target: &Target,
    arguments: &ExplainArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let files = files_of(target)?;
    let told = files
        .iter()
        .map(|file| anyhow::Ok((file.display().to_string(), of_file(file, arguments)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    match arguments.format {
        Form::Text => {
            for (number, (name, told)) in told.iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                write_text(out, name, told)?;
            }
        }
        Form::Json => {
            let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
            let told: Vec<&WhereItIs> = told.iter().map(|(_, told)| told).collect();
            let answer = json!({"schema": "heapr.explain/1", "subjects": names, "where": told});
            writeln!(out, "{}", json_lines(&answer))?;
        }
        Form::Github | Form::Junit | Form::Html => {
            bail!("--where is printed as text or json: a page of it is that of heapr view --static")
        }
    }
    Ok(())
}

fn files_of(target: &Target) -> anyhow::Result<Vec<PathBuf>> {
    match target {
        Target::Files(files) => Ok(files.clone()),
        Target::Session(name) => match client(name)?.ask(Request::Status)? {
            SessionAnswer::Status(status) => Ok(vec![PathBuf::from(status.output)]),
            _ => bail!("session {name} gives an answer that makes no sense"),
        },
        Target::Process(pid) => {
            bail!("--where is about recordings: heapr explain {pid} without it tells all memory of a process")
        }
    }
}

fn of_file(file: &Path, arguments: &ExplainArguments) -> anyhow::Result<WhereItIs> {
    let name = file.display().to_string();
    let line = ElapsedLine::new(format!("explaining {name}"));
    let trace = Arc::new(open(file)?);
    let filter = FilterArguments { at: arguments.at.clone(), ..FilterArguments::default() }.filter(&trace)?;
    let own = arguments.own.code(&trace)?;
    let explorer = Explorer::new(Arc::clone(&trace));
    explorer.name(&mut TraceNames::new(&trace, &arguments.names));
    let then = explorer.live_then(&[], filter.at.unwrap_or(Moment::Peak), &|| false)?;
    let live = LiveBlocks { time_ns: then.time_ns, rows: &then.rows, rests: &then.rests };
    let told = heapr_findings::where_it_is(&trace, explorer.tree(), &own, &[], live);
    drop(line);
    for warning in heapr_export::warnings(&trace, &[], false).into_iter().chain(other_builds(&trace)) {
        warn!("{name}: {warning}");
    }
    Ok(told)
}

fn write_text(out: &mut dyn Write, name: &str, told: &WhereItIs) -> std::io::Result<()> {
    let resident = match (told.rss_bytes, told.rss_time_ns) {
        (Some(rss_bytes), Some(at_ns)) => format!("{} resident after {}", bytes(rss_bytes), duration(at_ns)),
        _ => "how much was resident is unknown".to_owned(),
    };
    writeln!(
        out,
        "{name}: {} live after {} in {}, {resident}; all of it:",
        bytes_within(told.live_bytes, told.live_bytes_plus_minus),
        duration(told.time_ns),
        plural_within(told.live_count, told.live_count_plus_minus, "block"),
    )?;
    let mut table = Table::new(
        "heapr.explain/1",
        &[
            Column::text("label", "where"),
            Column::bytes("bytes", "bytes"),
            Column::percent("percent", "%"),
            Column::count("block_count", "blocks"),
            Column::text("note", ""),
        ],
    );
    for piece in &told.pieces {
        let size = Cell::from(piece.bytes).within(piece.bytes_plus_minus);
        let blocks = match piece.block_count {
            Some(count) => Cell::from(count).within(piece.block_count_plus_minus),
            None => Cell::from(""),
        };
        let of_all = share(piece.bytes, told.whole_bytes);
        table.row(row![piece.label.as_str(), size, of_all, blocks, piece.note.as_str()]);
    }
    table.row(row!["all", told.whole_bytes, 100.0, "", ""]);
    write_table(&table, out)?;
    told.not_told.iter().try_for_each(|limit| writeln!(out, "not told: {limit}"))
}
