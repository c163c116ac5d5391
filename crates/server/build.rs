//! Embeds the page: the files of `ui/dist`, compressed; a package of this crate has them in `page`.
//! Without a built page it embeds a small one that says how to build it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const FALLBACK: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>heapr</title><h1>heapr view</h1>\
    <p>This build holds no page: build it with <code>npm ci &amp;&amp; npm run build</code> in <code>ui/</code>. \
    The API answers: see <code>docs/api.md</code>.";

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let packed = Path::new(&manifest).join("page");
    let folder = if packed.exists() { packed } else { Path::new(&manifest).join("../../ui/dist") };
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut found = Vec::new();
    collect(&folder, "", &mut found);
    found.sort();
    let is_built = found.iter().any(|(path, _)| path == "index.html");
    let mut table =
        String::from("/// The files of the page.\npub(crate) static PAGE_FILES: &[PageFile] = &[\n");
    if is_built {
        for (number, (path, file)) in found.iter().enumerate() {
            println!("cargo::rerun-if-changed={}", file.display());
            add(&mut table, &out, number, path, &std::fs::read(file).expect("a file of the page"));
        }
    } else {
        add(&mut table, &out, 0, "index.html", FALLBACK.as_bytes());
    }
    table.push_str("];\n");
    std::fs::write(out.join("page_files.rs"), table).expect("OUT_DIR can be written");
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{path}/"), found);
        } else if !path.ends_with(".map") {
            found.push((path, entry.path()));
        }
    }
}

fn add(table: &mut String, out: &Path, number: usize, path: &str, bytes: &[u8]) {
    // Without time and name in the header, the same page gives the same bytes.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory can be written");
    let file = out.join(format!("page_{number}.gz"));
    std::fs::write(&file, encoder.finish().expect("memory can be written")).expect("OUT_DIR can be written");
    let content_type = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    writeln!(
        table,
        "    PageFile {{ path: {path:?}, content_type: {content_type:?}, gzip: include_bytes!({:?}) }},",
        file.display().to_string()
    )
    .expect("text can be written");
}
