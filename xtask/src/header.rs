//! Generates `heapr.h` from the C API's Rust by cbindgen. The checked-in file is compared here, so
//! that it never lags behind.

use anyhow::{Context as _, bail};

/// Path in the repository.
const HEADER: &str = "crates/capi/heapr.h";

/// Text before everything else.
const HEAD: &str = "/* Heap trace sessions: link with -lheapr. Made from crates/capi by `cargo xtask header`: do not edit. */";

/// Writes the header, or checks that the existing one is up to date.
pub(crate) fn run(is_check: bool) -> anyhow::Result<()> {
    let path = crate::root().join(HEADER);
    let text = generate()?;
    if !is_check {
        return std::fs::write(&path, text).with_context(|| path.display().to_string());
    }
    let present = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    if present != text {
        bail!("{HEADER} is not what crates/capi says: run `cargo xtask header`");
    }
    println!("header: {HEADER} is right");
    Ok(())
}

fn generate() -> anyhow::Result<String> {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(HEAD.to_owned()),
        include_guard: Some("HEAPR_H".to_owned()),
        cpp_compat: true,
        documentation: true,
        documentation_style: cbindgen::DocumentationStyle::C,
        usize_is_size_t: true,
        style: cbindgen::Style::Tag,
        line_length: 110,
        ..cbindgen::Config::default()
    };
    config.enumeration.enum_class = false;
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_crate(crate::root().join("crates/capi"))
        .generate()
        .context("cbindgen")?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    let text = String::from_utf8(bytes).context("the header is no UTF-8")?;
    // Rust's conditions become C's documentation, without Rust's heading and links.
    Ok(text.replace(" * # Safety\n", " * Conditions:\n").replace('`', ""))
}
