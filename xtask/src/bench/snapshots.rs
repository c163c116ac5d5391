//! Compares time and memory of `heapr snapshot` on V8 snapshots of 140 MB and 1 GB with those of
//! memlab on the same files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::inputs;
use super::measured_run::{Cost, MeasuredRun, median};
use super::table::markdown;

/// Names of the files, and their units of `benches/make_snapshot.js`.
const SIZES: [(&str, u32); 2] = [("140 MB", 300), ("1 GB", 2150)];
/// Number of rounds: memlab takes most of a minute for the large file.
const ROUNDS: usize = 3;

/// Returns the larger snapshot and a later one, made if they do not exist.
pub(crate) fn large() -> anyhow::Result<(String, String)> {
    snapshots(&inputs::folder()?, SIZES[1].1)
}

/// Measures and returns the table.
pub(crate) fn run() -> anyhow::Result<String> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    let heapr = crate::check_agent::target_folder()?.join("release/heapr").display().to_string();
    let folder = inputs::folder()?;
    let memlab = memlab(&folder)?;
    let mut rows = Vec::new();
    for (name, units) in SIZES {
        let (file, later) = snapshots(&folder, units)?;
        let no_cache = folder.join("no-cache");
        let measure = |command: &[&str], index_size: &str| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let environment = BTreeMap::from([
                ("XDG_CACHE_HOME".to_owned(), no_cache.display().to_string()),
                ("HEAPR_INDEX_SIZE".to_owned(), index_size.to_owned()),
            ]);
            MeasuredRun::start(&command, &environment, &folder.join("log"))?.finish()
        };
        let memlab = memlab.display().to_string();
        let object_size =
            ["node", "--max-old-space-size=12000", &memlab, "analyze", "object-size", "--snapshot", &file];
        let summary = [heapr.as_str(), "snapshot", "summary", &file];
        let containment = [heapr.as_str(), "snapshot", "containment", &file];
        let query = [heapr.as_str(), "snapshot", "query", &file, "--text", "customer 12"];
        let diff = [heapr.as_str(), "snapshot", "diff", &file, &later];
        let mut costs: [Vec<Cost>; 6] = Default::default();
        for _ in 0..ROUNDS {
            forget(&no_cache)?;
            costs[0].push(measure(&summary, "0")?);
            forget(&no_cache)?;
            costs[1].push(measure(&diff, "0")?);
            costs[2].push(measure(&summary, "16G")?);
            costs[3].push(measure(&containment, "16G")?);
            costs[4].push(measure(&query, "16G")?);
            costs[5].push(measure(&object_size, "0")?);
        }
        let [first, diff, indexed, object, query, theirs] = costs.map(|costs| median(&costs));
        let mib = |cost: Cost| format!("{:.0}", cost.peak_rss_kib as f64 / 1024.0);
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", first.wall_s),
            mib(first),
            format!("{:.2}", indexed.wall_s),
            mib(indexed),
            format!("{:.2}", object.wall_s),
            format!("{:.2}", query.wall_s),
            format!("{:.2}", diff.wall_s),
            mib(diff),
            format!("{:.2}", theirs.wall_s),
            mib(theirs),
            format!("1/{:.1}", theirs.wall_s / first.wall_s),
            format!("{:.2} ×", diff.wall_s / first.wall_s),
        ]);
    }
    let heading = [
        "file",
        "summary s",
        "MiB",
        "and index s",
        "MiB",
        "object s",
        "query s",
        "diff s",
        "MiB",
        "memlab object-size s",
        "MiB",
        "summary ÷ memlab",
        "diff ÷ summary",
    ];
    Ok(format!(
        "## V8 snapshots\n\nMedians of {ROUNDS} interleaved rounds. *and index*: the same summary when the index is written after it (the answer is \
         out before). *object* (`containment` of the root) and *query* (`--text 'customer 12'`) are answered from the index.\n\n{}",
        markdown(&heading, &rows)
    ))
}

/// Returns the pair of snapshots of a size, made once.
fn snapshots(folder: &Path, units: u32) -> anyhow::Result<(String, String)> {
    let file = folder.join(format!("{units}.heapsnapshot")).display().to_string();
    let later = format!("{file}.2");
    if !Path::new(&later).exists() {
        let script = crate::root().join("benches/make_snapshot.js");
        crate::run(Command::new("node").arg("--max-old-space-size=12000").arg(script).args([
            &file,
            &units.to_string(),
            "--grow",
            &(units / 10).to_string(),
        ]))?;
    }
    Ok((file, later))
}

/// Returns memlab's command, from npm; its browser is not needed.
pub(super) fn memlab(folder: &Path) -> anyhow::Result<PathBuf> {
    let place = folder.join("memlab");
    let command = place.join("node_modules/.bin/memlab");
    if !command.exists() {
        std::fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        crate::run(Command::new("npm").current_dir(&place).args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "memlab@2.0.5",
        ]))?;
    }
    Ok(command)
}

/// Removes a cache.
pub(super) fn forget(cache: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(cache) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| cache.display().to_string())
        }
        _ => Ok(()),
    }
}
