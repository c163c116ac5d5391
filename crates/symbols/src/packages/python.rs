//! Distributions of Python: the folders `NAME-VERSION.dist-info` and `.egg-info` beside packages.

use std::path::Path;

use super::{DESCRIPTION_BYTES_MAX, joined};

/// Largest number of distributions whose lists of files are searched.
const LISTS_MAX: usize = 2000;
/// Largest size in bytes of a list of files.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Name and version of the distribution that a file of a `site-packages` folder belongs to. Without
/// metadata it is the name of the package; `None` for a folder of the system's packages.
pub(super) fn name(folder: &Path, inside: &str) -> Option<String> {
    let top = inside.split(['/', '.']).next().filter(|top| !top.is_empty())?;
    let entries = std::fs::read_dir(folder).ok();
    let mut infos: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".dist-info") || name.ends_with(".egg-info"))
        .collect();
    infos.sort();
    let wanted = normal(top);
    let of_name = infos.iter().find(|info| info.split('-').next().is_some_and(|name| normal(name) == wanted));
    let of_list = || {
        let read =
            |info: &str, list: &str| heapr_files::read_text(&folder.join(info).join(list), LIST_BYTES_MAX);
        let is_listed = |info: &&String| match read(info, "RECORD") {
            Ok(text) => {
                text.lines().any(|line| line.strip_prefix(inside).is_some_and(|rest| rest.starts_with(',')))
            }
            // An `.egg-info` lists its files as they are seen from it.
            Err(_) => read(info, "installed-files.txt")
                .is_ok_and(|text| text.lines().any(|line| line.strip_prefix("../") == Some(inside))),
        };
        infos.iter().take(LISTS_MAX).find(is_listed)
    };
    match of_name.or_else(of_list) {
        Some(info) => of_info(folder, info),
        None if folder.ends_with("dist-packages") => None,
        None => Some(top.to_owned()),
    }
}

/// Reads name and version from a folder's description, or else from the folder's name.
fn of_info(folder: &Path, info: &str) -> Option<String> {
    let read = |file: &str| heapr_files::read_text(&folder.join(info).join(file), DESCRIPTION_BYTES_MAX).ok();
    if let Some(text) = read("METADATA").or_else(|| read("PKG-INFO")) {
        let field = |key: &str| {
            let mut lines = text.lines().take_while(|line| !line.is_empty());
            lines.find_map(|line| line.strip_prefix(key)).map(str::trim)
        };
        if let Some(name) = field("Name:") {
            return Some(joined(name, field("Version:")));
        }
    }
    let stem = info.strip_suffix(".dist-info").or_else(|| info.strip_suffix(".egg-info"))?;
    let mut parts = stem.split('-');
    Some(joined(parts.next()?, parts.next()))
}

/// Form of a name in which spellings are equal: `Py_YAML` as `py-yaml`.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}
