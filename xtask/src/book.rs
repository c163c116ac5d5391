//! Renders the book as pages for a browser: every document of `docs/`, with the book's table of
//! contents beside it. Packages contain them, too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};

const STYLE: &str = "body{margin:0;display:flex;font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}
nav{flex:0 0 17em;padding:1em;border-right:1px solid #ddd;height:100vh;overflow:auto;position:sticky;top:0;box-sizing:border-box}
nav ul{list-style:none;padding:0}nav h1{font-size:1em;margin:1em 0 .2em}main{flex:1;max-width:56em;padding:1em 2em;min-width:0}
pre{background:#f4f4f4;padding:.8em;overflow:auto}code{font:14px/1.4 ui-monospace,monospace}table{border-collapse:collapse}
td,th{border:1px solid #ddd;padding:.3em .6em;text-align:left;vertical-align:top}a{color:#0b57a4}img{max-width:100%}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#242424}td,th,nav{border-color:#444}a{color:#7ab7ff}}";

/// Documents outside of `docs/`.
const BESIDE: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "README.md"];
const FIRST: &str = "docs/book/README.md";

/// Writes all pages into a folder, which is emptied first. Returns their number.
pub(crate) fn write(into: &Path) -> anyhow::Result<usize> {
    if into.exists() {
        fs::remove_dir_all(into).with_context(|| into.display().to_string())?;
    }
    let root = crate::root();
    let contents = fs::read_to_string(root.join("docs/book/SUMMARY.md")).context("docs/book/SUMMARY.md")?;
    let mut found: Vec<PathBuf> = BESIDE.iter().map(PathBuf::from).collect();
    documents(&root, Path::new("docs"), &mut found)?;
    let count = found.len();
    for path in found {
        let target = into.join(&path);
        fs::create_dir_all(target.parent().context("a folder")?)?;
        if path.extension().is_none_or(|extension| extension != "md") {
            fs::copy(root.join(&path), &target).with_context(|| path.display().to_string())?;
            continue;
        }
        let text = fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("heapr").to_owned();
        // Path from the page to the folder that the table's links are relative to.
        let above = "../".repeat(path.components().count() - 1);
        let page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} - heapr</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n<body><nav>{}</nav>\n<main>{}</main></body></html>\n",
            rendered(&contents, &format!("{above}docs/book/")),
            rendered(&text, ""),
        );
        fs::write(target.with_extension("html"), page)?;
    }
    let first = Path::new(FIRST).with_extension("html");
    ensure!(into.join(&first).exists(), "{FIRST} is missing");
    let index =
        format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={}\">\n", first.display());
    fs::write(into.join("index.html"), index)?;
    Ok(count)
}

/// Collects the files below a folder.
fn documents(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            documents(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Renders Markdown as HTML. Links to documents lead to their pages, relative to `base`.
fn rendered(text: &str, base: &str) -> String {
    let is_document = |link: &str| !link.contains("://") && !link.starts_with('#');
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) if is_document(&dest_url) => {
            let dest_url = CowStr::from(format!("{base}{}", dest_url.replacen(".md", ".html", 1)));
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        event => event,
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

#[test]
fn links_lead_to_pages() {
    let page = rendered("[a](b.md#c) [d](https://e/f.md)\n\n| x |\n|---|\n| y |\n", "../");
    assert!(page.contains("href=\"../b.html#c\"") && page.contains("https://e/f.md"), "{page}");
    assert!(page.contains("<td>y</td>"), "{page}");
}
