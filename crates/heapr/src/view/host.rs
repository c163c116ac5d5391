//! What the server asks the command line: to read filters, to find names, to export.

use std::path::Path;

use clap::Parser as _;
use heapr_query::{CullList, Filter, SymbolSource};
use heapr_server::{ExportRequest, Host};
use heapr_trace::{SnapshotTrigger, Trace};
use heapr_v8::IndexStore;

use crate::report::filter_arguments::FilterArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::index_cache;
use crate::snapshot_native::why;

/// See the module.
#[derive(Debug)]
pub(crate) struct CommandLineHost {
    pub(crate) names: NameArguments,
}

/// Nothing but filters.
#[derive(Debug, clap::Parser)]
#[command(name = "filter", no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct FilterLine {
    #[command(flatten)]
    filters: FilterArguments,
}

impl Host for CommandLineHost {
    fn filter(&self, words: &[String], trace: &Trace) -> Result<(Filter, CullList), String> {
        let line = FilterLine::try_parse_from(words).map_err(|error| first_line(&error.to_string()))?;
        let read = || anyhow::Ok((line.filters.filter(trace)?, line.filters.cull_list()?));
        read().map_err(|error| format!("{error:#}"))
    }

    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send> {
        Box::new(TraceNames::new(trace, &self.names))
    }

    fn export(&self, request: &ExportRequest<'_>) -> Result<Vec<u8>, String> {
        export(self, request).map_err(|error| format!("{error:#}"))
    }

    fn snapshot_indexes(&self, path: &Path) -> Option<IndexStore> {
        index_cache::store_for(path)
    }

    fn trigger(&self, trigger: SnapshotTrigger) -> String {
        why(trigger)
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
}

/// clap's error without its advice on usage.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Runs heapr itself: an exported file is what its command writes.
fn export(host: &CommandLineHost, request: &ExportRequest<'_>) -> anyhow::Result<Vec<u8>> {
    let mut words: Vec<String> = Vec::new();
    let is_table = matches!(request.to, "csv" | "json");
    words.push(if is_table { "report" } else { "export" }.to_owned());
    words.push(request.path.display().to_string());
    if is_table {
        words.extend([
            format!("--{}", request.by),
            request.value.to_owned(),
            "--format".into(),
            request.to.into(),
        ]);
    } else {
        words.extend(["--to".to_owned(), request.to.to_owned(), "--value".into(), request.value.into()]);
    }
    words.extend(request.filter_words.iter().cloned());
    let shown = |path: &Path| path.display().to_string();
    words.extend(host.names.symbol_path.iter().flat_map(|path| ["--symbol-path".to_owned(), shown(path)]));
    words.extend(host.names.sysroot.iter().flat_map(|path| ["--sysroot".to_owned(), shown(path)]));
    let own = std::env::current_exe()?;
    let output = std::process::Command::new(own).args(&words).stdin(std::process::Stdio::null()).output()?;
    if !output.status.success() {
        anyhow::bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
