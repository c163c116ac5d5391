//! Metrics are listed in one table: the page's copy is generated, and there is no other list.

use std::path::{Path, PathBuf};

use heapr_query::{Metric, typescript};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `HEAPR_WRITE_GENERATED=1` writes the copy.
#[test]
fn the_page_has_the_table_of_metrics() {
    let path = root().join("ui/src/api/metrics.ts");
    if std::env::var_os("HEAPR_WRITE_GENERATED").is_some() {
        std::fs::write(&path, typescript()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == typescript(), "run this test with HEAPR_WRITE_GENERATED=1, then build the page");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path
            .extension()
            .is_some_and(|ending| ["rs", "ts", "tsx"].iter().any(|&known| ending == known))
        {
            found.push(path);
        }
    }
}

/// A new sort key is a row of the table; any other list of keys would have to be changed, too.
#[test]
fn sort_keys_are_listed_in_the_table_and_its_copy_alone() {
    let mut found = Vec::new();
    for member in
        std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"))
    {
        sources(&member, &mut found);
    }
    sources(&root().join("ui/src"), &mut found);
    let keys: Vec<&str> = Metric::sort_keys().map(Metric::key).collect();
    let lists = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let has =
            |key: &&&str| ['"', '\''].iter().any(|quote| code.contains(&format!("{quote}{key}{quote}")));
        keys.iter().filter(has).count() * 2 > keys.len()
    };
    found.retain(|path| !path.to_string_lossy().contains(".test.") && lists(path));
    found.sort();
    let root = root();
    let found: Vec<&Path> = found.iter().map(|path| path.strip_prefix(&root).unwrap()).collect();
    assert_eq!(found, [Path::new("crates/query/src/metrics.rs"), Path::new("ui/src/api/metrics.ts")]);
}
