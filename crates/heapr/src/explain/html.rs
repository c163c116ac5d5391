//! Static page of `heapr view` with the answer in it.

use std::io::Write;
use std::sync::Arc;

use heapr_files::Existing;
use heapr_server::{Files, Limits, StaticChoices, write_static};

use super::answer::Answer;
use super::arguments::ExplainArguments;
use crate::snapshot::verbs::is_trace;
use crate::view::CommandLineHost;

/// Writes the page of an answer on resident memory.
pub(super) fn write(
    answer: &Answer,
    arguments: &ExplainArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if answer.resident.is_none() && answer.moments.is_none() {
        anyhow::bail!("--format html shows resident memory, and nothing is known of it");
    }
    let folder = tempfile::tempdir()?;
    let path = match arguments.target.as_slice() {
        // A file of saved answers has more than its moments.
        [file] if answer.moments.is_some() && file.is_file() && !is_trace(file) => file.clone(),
        _ => {
            let path = folder.path().join("resident memory");
            heapr_files::make(&path, Existing::Kept)?.write_all(answer.json()?.to_string().as_bytes())?;
            path
        }
    };
    let host = Arc::new(CommandLineHost {
        names: arguments.names.clone(),
        own: arguments.own.clone(),
        shown: heapr_filters::ShownFrames::default(),
        folder: folder.path().to_owned(),
        is_static: true,
        graphs: Vec::new(),
    });
    let files = Files::open(&[path], host, Limits::default());
    out.write_all(&write_static(&files, &StaticChoices::default(), &mut |_| {})?)?;
    Ok(())
}
