//! Commands of the book: each is run, and its output is compared with the book's.
//!
//! | fenced block | what becomes of it |
//! |---|---|
//! | `LANGUAGE file=NAME` | written to that file in the page's folder |
//! | `console` | lines that begin with `$ ` are run by bash, in one shell for the page; the others are their output |
//! | `console not-run: REASON` | cannot run here; only the page's source shows the reason |
//! | anything else | text |
//!
//! Output is compared without its numbers and units; `HEAPR_WRITE_GENERATED=1` writes it into the
//! pages. `HEAPR_BOOK=languages/java.md` runs one page alone, `HEAPR_BOOK=languages` a folder, and
//! `HEAPR=FILE` another program than the one that is built here, such as an installed one.
#![forbid(unsafe_code)]

mod page;
mod shell;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use page::{Block, Page};

/// Number of pages that are run at once.
const PAGES_AT_ONCE: usize = 2;

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book")
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
}

/// Outcome of the pages that were run.
#[derive(Default)]
struct Outcome {
    wrong: Vec<String>,
    command_count: usize,
}

/// Runs a page, and writes what it prints into it where that is asked for.
fn run(path: &Path, writes: bool, outcome: &Mutex<Outcome>) {
    let mut page = Page::read(path);
    if !page.blocks().any(|block| matches!(block, Block::Console { .. })) {
        return;
    }
    let shown = path.strip_prefix(book()).unwrap().display().to_string();
    if let Some(tool) = page.missing_tool() {
        heapr_testkit::not_run(format!("{shown}: there is no {tool}"));
        return;
    }
    let mut differs = Vec::new();
    let command_count = shell::run(&mut page, &shown, &mut differs);
    if !differs.is_empty() && !writes {
        // Once more: what a page starts in the background may not have come to anything yet.
        eprintln!("a second time: {}", differs.join("\n"));
        differs.clear();
        page = Page::read(path);
        shell::run(&mut page, &shown, &mut differs);
    }
    if writes {
        page.write(path);
    }
    let mut outcome = outcome.lock().unwrap();
    outcome.wrong.append(&mut differs);
    outcome.command_count += command_count;
}

#[test]
fn commands_of_the_book_print_what_it_says() {
    let mut found = Vec::new();
    pages(&book(), &mut found);
    let writes = std::env::var_os("HEAPR_WRITE_GENERATED").is_some();
    if let Some(only) = std::env::var_os("HEAPR_BOOK") {
        found.retain(|path| {
            path.ends_with(&only) || path.parent().is_some_and(|folder| folder.ends_with(&only))
        });
    }
    let outcome = Mutex::new(Outcome::default());
    let next = AtomicUsize::new(0);
    // A page waits for its programs for half of its time, and each has folders of its own.
    std::thread::scope(|scope| {
        for _ in 0..PAGES_AT_ONCE {
            scope.spawn(|| {
                while let Some(path) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(path, writes, &outcome);
                }
            });
        }
    });
    let Outcome { wrong, command_count } = outcome.into_inner().unwrap();
    assert!(command_count > 0, "the book has commands");
    assert!(writes || wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents_and_every_entry_is_a_page() {
    let mut found = Vec::new();
    pages(&book(), &mut found);
    let summary = std::fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let entries: Vec<PathBuf> = summary
        .split("](")
        .skip(1)
        .map(|rest| book().join(rest.split(')').next().unwrap()))
        .inspect(|path| assert!(path.is_file(), "{}", path.display()))
        .collect();
    for path in found.iter().filter(|path| !path.ends_with("SUMMARY.md")) {
        assert!(entries.contains(path), "{} is in no table of contents", path.display());
    }
    for path in &found {
        let text = std::fs::read_to_string(path).unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
            let is_file = !link.is_empty() && !link.contains("://");
            assert!(!is_file || path.with_file_name(link).exists(), "{}: no file {link}", path.display());
        }
    }
}

#[test]
fn every_decision_is_in_their_index() {
    let folder = book().join("../decisions");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name} is not in the index");
    }
}

#[test]
fn the_read_me_is_short() {
    let read_me = std::fs::read_to_string(book().join("../../README.md")).unwrap();
    assert!(read_me.lines().count() <= 120, "{} lines", read_me.lines().count());
}
