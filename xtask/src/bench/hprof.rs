//! Measures the reading of heap dumps of Java: the first answer, the index, the second question.
//! A dump larger than the memory of a control group is read, too.
//!
//! `HEAPR` names a program to use instead of a new build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::made_dump;
use super::measured_run::{Cost, MeasuredRun};
use super::table::markdown;
use crate::memory_group::MemoryGroup;

/// Dumps: name, customers, bytes of a picture, memory of the group in MiB.
const DUMPS: [(&str, u64, u32, u64); 2] = [("1", 1_700_000, 3_000, 1_144), ("10", 5_000_000, 73_000, 4_768)];
/// Questions on a dump that has an index.
const SECOND: [&[&str]; 6] = [
    &["summary"],
    &["suspects"],
    &["holders"],
    &["collections"],
    &["collections", "--empty"],
    &["collections", "--owners"],
];

/// Measures and returns the table. `only`: names of dumps, in GB.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = super::inputs::folder()?;
    let mut rows = Vec::new();
    for (name, customers, picture_bytes, limit_mib) in DUMPS {
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let file = folder.join(format!("made-{name}.hprof"));
        if !file.exists() {
            let partial = file.with_extension("partial");
            let made = made_dump::write(&partial, customers, picture_bytes)?;
            eprintln!("{}: {} objects, {} bytes", file.display(), made.object_count, made.bytes);
            std::fs::rename(partial, &file)?;
        }
        rows.extend(measure(&heapr, &file, &folder, limit_mib)?);
    }
    Ok(format!(
        "## Heap dumps of Java\n\nThe memory of the control group is the bar: 1.2 GB and 5 GB.\n\n{}",
        markdown(&["dump", "question", "seconds", "CPU s", "MiB"], &rows)
    ))
}

fn measure(heapr: &str, file: &Path, folder: &Path, limit_mib: u64) -> anyhow::Result<Vec<Vec<String>>> {
    let cache = tempfile::tempdir_in(folder)?;
    let log = folder.join("log");
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let shown = file.display().to_string();
    let environment = |index: &str| {
        BTreeMap::from([
            ("XDG_CACHE_HOME".to_owned(), cache.path().display().to_string()),
            ("HEAPR_INDEX_SIZE".to_owned(), index.to_owned()),
        ])
    };
    let run = |words: &[&str], index: &str| -> anyhow::Result<Cost> {
        let command = [&[heapr, "snapshot"], words, &[shown.as_str()]].concat();
        let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
        MeasuredRun::start(&command, &environment(index), &log)?.finish()
    };
    let row = |question: &str, cost: Cost| {
        vec![
            name.clone(),
            question.to_owned(),
            format!("{:.2}", cost.wall_s),
            format!("{:.2}", cost.cpu_s),
            format!("{:.0}", cost.peak_rss_kib as f64 / 1024.0),
        ]
    };
    let mut rows = vec![row("first answer, no index", run(&["summary"], "0")?)];
    forget(cache.path())?;
    rows.push(limited(heapr, &shown, &name, limit_mib, &environment("0"))?);
    forget(cache.path())?;
    rows.push(row("first answer, and its index", run(&["summary"], "64G")?));
    for words in SECOND {
        rows.push(row(&words.join(" "), run(words, "64G")?));
    }
    Ok(rows)
}

/// Measures the first answer in a control group of little memory.
fn limited(
    heapr: &str,
    file: &str,
    name: &str,
    limit_mib: u64,
    environment: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<String>> {
    let group = MemoryGroup::new("hprof", None, Some(limit_mib))?;
    let words = [heapr, "snapshot", "summary", file].map(str::to_owned);
    let folder = PathBuf::from("/");
    let begin = Instant::now();
    let status = group.command(&words, &folder).envs(environment).status().context("heapr")?;
    let wall_s = begin.elapsed().as_secs_f64();
    ensure!(status.success() && group.kill_count() == 0, "{name} within {limit_mib} MiB: {status}");
    Ok(vec![
        name.to_owned(),
        format!("first answer within {limit_mib} MiB"),
        format!("{wall_s:.2}"),
        String::new(),
        format!("at most {limit_mib}"),
    ])
}

fn forget(cache: &Path) -> anyhow::Result<()> {
    crate::run(Command::new("find").arg(cache).args(["-mindepth", "1", "-delete"]))
}
