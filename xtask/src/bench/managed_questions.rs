//! Questions on the file of a Python's heap: heapr's answers with and without its index. Beside it
//! runs memlab, which reads such a file as one of V8.

use std::collections::BTreeMap;
use std::path::Path;

use super::inputs;
use super::measured_run::{Cost, MeasuredRun, median};
use super::snapshots::{forget, memlab};
use super::table::markdown;

const ROUNDS: usize = 3;

/// Measures and returns the table.
pub(super) fn run(heapr: &str, file: &Path, folder: &Path) -> anyhow::Result<String> {
    let (file, cache) = (file.display().to_string(), folder.join("cache"));
    let measure = |command: &[&str], index_size: &str| {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let environment = BTreeMap::from([
            ("XDG_CACHE_HOME".to_owned(), cache.display().to_string()),
            ("HEAPR_INDEX_SIZE".to_owned(), index_size.to_owned()),
        ]);
        MeasuredRun::start(&command, &environment, &folder.join("log"))?.finish()
    };
    let questions: [&[&str]; 3] = [&["summary"], &["suspects"], &["collections", "--owners"]];
    let mut rows = Vec::new();
    for question in questions {
        let command = [&[heapr, "snapshot"], question, &[file.as_str()]].concat();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            forget(&cache)?;
            first.push(measure(&command, "0")?);
            measure(&command, "16G")?;
            second.push(measure(&command, "16G")?);
        }
        rows.push(row(&format!("heapr {}", question.join(" ")), median(&first)));
        rows.push(row(&format!("heapr {}, from the index", question.join(" ")), median(&second)));
    }
    let memlab = memlab(&inputs::folder()?)?.display().to_string();
    let theirs =
        ["node", "--max-old-space-size=12000", &memlab, "analyze", "object-size", "--snapshot", &file];
    let costs: anyhow::Result<Vec<Cost>> = (0..ROUNDS).map(|_| measure(&theirs, "0")).collect();
    // It may refuse the file.
    let theirs = costs.map(|costs| row("memlab analyze object-size", median(&costs)));
    rows.push(theirs.unwrap_or_else(|error| {
        vec![format!("memlab: {error:#}"), String::new(), String::new(), String::new()]
    }));
    Ok(format!(
        "Questions on the file of a million objects, medians of {ROUNDS}.\n\n{}",
        markdown(&["question", "seconds", "CPU s", "MiB"], &rows)
    ))
}

fn row(name: &str, cost: Cost) -> Vec<String> {
    let mib = cost.peak_rss_kib as f64 / 1024.0;
    vec![name.to_owned(), format!("{:.2}", cost.wall_s), format!("{:.2}", cost.cpu_s), format!("{mib:.0}")]
}
