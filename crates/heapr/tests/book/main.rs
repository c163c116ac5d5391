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
//! pages, and `HEAPR_BOOK=languages/java.md` runs one page alone.
#![forbid(unsafe_code)]

mod page;
mod shell;

use std::path::{Path, PathBuf};

use page::{Block, Page};

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

#[test]
fn commands_of_the_book_print_what_it_says() {
    let mut found = Vec::new();
    pages(&book(), &mut found);
    let writes = std::env::var_os("HEAPR_WRITE_GENERATED").is_some();
    if let Some(only) = std::env::var_os("HEAPR_BOOK") {
        found.retain(|path| path.ends_with(&only));
    }
    let (mut wrong, mut run) = (Vec::new(), 0);
    for path in found {
        let mut page = Page::read(&path);
        if !page.blocks().any(|block| matches!(block, Block::Console { .. })) {
            continue;
        }
        let shown = path.strip_prefix(book()).unwrap().display().to_string();
        if let Some(tool) = page.missing_tool() {
            heapr_testkit::not_run(format!("{shown}: there is no {tool}"));
            continue;
        }
        let mut differs = Vec::new();
        run += shell::run(&mut page, &shown, &mut differs);
        if !differs.is_empty() && !writes {
            // Once more: what a page starts in the background may not have come to anything yet.
            eprintln!("a second time: {}", differs.join("\n"));
            differs.clear();
            page = Page::read(&path);
            shell::run(&mut page, &shown, &mut differs);
        }
        wrong.append(&mut differs);
        if writes {
            page.write(&path);
        }
    }
    assert!(run > 0, "the book has commands");
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
