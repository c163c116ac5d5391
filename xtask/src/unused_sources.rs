//! Finds source files that no module names: they are not compiled, and nothing else tells it.

use std::path::Path;

use anyhow::Context as _;

use crate::sources::rust_files;

/// Returns the files of a crate's `src` folder that neither the module above declares nor a
/// neighbour includes.
pub(crate) fn unused(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in rust_files(folder)? {
        let is_used = is_used(folder, &path).with_context(|| path.display().to_string())?;
        if !is_used {
            found.push(path.display().to_string());
        }
    }
    Ok(found)
}

fn is_used(folder: &Path, path: &Path) -> anyhow::Result<bool> {
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let parent = path.parent().unwrap_or(folder);
    let is_binary = parent.file_name().is_some_and(|name| name == "bin");
    let own = name(path).unwrap_or_default();
    if is_binary || own == "main" || own == "lib" {
        return Ok(true);
    }
    // The module of `a/mod.rs` is called `a`.
    let (module, above) = match own.as_str() {
        "mod" => (name(parent).unwrap_or_default(), parent.parent().unwrap_or(folder)),
        _ => (own.clone(), parent),
    };
    let beside = above.with_extension("rs");
    let places = ["mod.rs", "lib.rs", "main.rs"].map(|file| above.join(file));
    for place in places.iter().chain([&beside]).filter(|place| place.exists()) {
        let text = std::fs::read_to_string(place)?;
        if declares(&text, &module) {
            return Ok(true);
        }
    }
    let included = format!("include_str!(\"{own}.rs\")");
    let neighbours = rust_files(parent)?;
    Ok(neighbours
        .iter()
        .any(|other| std::fs::read_to_string(other).is_ok_and(|text| text.contains(&included))))
}

/// Whether a source declares a module.
fn declares(source: &str, module: &str) -> bool {
    source.lines().any(|line| {
        let declared = line.trim().rsplit_once("mod ").map(|(_, declared)| declared.trim_start_matches("r#"));
        declared.is_some_and(|declared| {
            declared.strip_prefix(module).is_some_and(|rest| rest.starts_with([';', ' ', '{']))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let folder = crate::root().join("target/xtask-test-unused-sources");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("a")).unwrap();
        for (file, text) in [
            ("lib.rs", "mod a;\npub(crate) mod b;\n"),
            ("a/mod.rs", "#[cfg(test)]\nmod tests;\nconst C: &str = include_str!(\"c.rs\");\n"),
            ("a/tests.rs", ""),
            ("a/c.rs", ""),
            ("b.rs", "// mod dead\n"),
            ("dead.rs", ""),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        assert_eq!(unused(&folder).unwrap(), [folder.join("dead.rs").display().to_string()]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
