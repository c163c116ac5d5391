//! `heapr symbolize`: embeds the symbols in a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use heapr_query::{Action, CullList, GroupBy, Query, SortKey};
use heapr_symbols::encode_bundle;

use crate::commands::report::open;
use crate::report::names::{NameArguments, TraceNames};
use crate::report::quantity::{bytes, count, plural};

/// Arguments of `heapr symbolize`.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolizeArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    names: NameArguments,
    /// Leave FILE as it is and write a copy with the symbols
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: SymbolizeArguments) -> anyhow::Result<ExitCode> {
    let target = match &arguments.output {
        None => arguments.file.clone(),
        Some(copy) => {
            open(&arguments.file)?;
            anyhow::ensure!(!copy.exists(), "{} exists: name another file", copy.display());
            std::fs::copy(&arguments.file, copy)
                .with_context(|| format!("cannot copy {} to {}", arguments.file.display(), copy.display()))?;
            copy.clone()
        }
    };
    let trace = open(&target)?;
    let mut names = TraceNames::new(&trace, &arguments.names).keep_tables();
    // Whatever asks for all stacks with nothing culled asks for every name.
    let query = Query {
        cull: CullList::empty(),
        actions: vec![Action::Ranking { by: GroupBy::Stacks, sort: SortKey::default() }],
        top: 1,
        ..Query::default()
    };
    heapr_query::run(&trace, &query, &mut names)?;
    let bundle = encode_bundle(names.tables.iter().map(|(key, table)| (key, table)));
    drop(trace);
    heapr_trace::embed_symbols(&target, &bundle)
        .map_err(|error| anyhow::anyhow!("{}: {error}", target.display()))?;
    let addresses: usize = names.tables.iter().map(|(_, table)| table.len()).sum();
    println!(
        "{}: {} address{} in {}, {} of symbols",
        target.display(),
        count(addresses as u64),
        if addresses == 1 { "" } else { "es" },
        plural(names.tables.len() as u64, "module"),
        bytes(bundle.len() as u64)
    );
    Ok(ExitCode::SUCCESS)
}
