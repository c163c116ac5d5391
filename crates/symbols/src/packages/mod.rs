//! Packages that files belong to: name and version, from the file's path and from the metadata that
//! package managers keep beside it.
//!
//! The metadata are those of the machine on which the question is asked. A path that does not exist
//! there has only what its text tells.

mod dpkg;
mod path;
mod python;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use path::Place;

/// Largest size in bytes of a package's own description.
const DESCRIPTION_BYTES_MAX: u64 = 4 << 20;

/// Packages of files. Each file is looked up once.
#[derive(Debug, Default)]
pub struct Packages {
    known: Mutex<HashMap<String, Option<String>>>,
}

impl Packages {
    /// Name and version of the package that a file belongs to: `lxml 4.9.2`. The version is left
    /// out if no metadata tell it; `None` if the file belongs to no known package.
    #[must_use]
    pub fn name(&self, file: &str) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(file) {
            return name.clone();
        }
        let name = find(file);
        known.insert(file.to_owned(), name.clone());
        name
    }
}

fn find(file: &str) -> Option<String> {
    match path::place(file) {
        Some(Place::Told { name, version }) => Some(joined(&name, version.as_deref())),
        Some(Place::Node { folder, name }) => {
            let text =
                heapr_files::read_text(&Path::new(&folder).join("package.json"), DESCRIPTION_BYTES_MAX).ok();
            Some(joined(&name, text.as_deref().and_then(json_version)))
        }
        Some(Place::Python { folder, inside }) => {
            python::name(Path::new(&folder), &inside).or_else(|| dpkg::name(file))
        }
        None => dpkg::name(file),
    }
}

fn joined(name: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    }
}

/// Value of the first member `version` in a JSON text.
fn json_version(text: &str) -> Option<&str> {
    let rest = text.split_once("\"version\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let (version, _) = rest.strip_prefix('"')?.split_once('"')?;
    (!version.is_empty() && version.len() < 64).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_the_metadata_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("node_modules/@napi/canvas/package.json", "{\n \"name\": \"x\", \"version\": \"0.1.53\" }");
        write("node_modules/@napi/canvas/skia.node", "");
        write("site-packages/lxml/etree.so", "");
        write(
            "site-packages/lxml-4.9.2.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: lxml\nVersion: 4.9.2\n\nName: no\n",
        );
        write("site-packages/PyYAML-6.0.dist-info/METADATA", "Name: PyYAML\nVersion: 6.0\n");
        write("site-packages/PyYAML-6.0.dist-info/RECORD", "yaml/__init__.py,sha256=x,1\nyaml/_yaml.so,,\n");
        write("site-packages/ujson.cpython-311.so", "");
        write("site-packages/ujson-5.9.0.dist-info/METADATA", "Name: ujson\nVersion: 5.9.0\n");
        write("site-packages/py_aho-1.1.7-py3.8.egg-info/PKG-INFO", "Name: py-aho\nVersion: 1.1.7\n");
        write("site-packages/py_aho-1.1.7-py3.8.egg-info/installed-files.txt", "../aho.so\nPKG-INFO\n");
        let packages = Packages::default();
        let name = |path: &str| packages.name(&folder.path().join(path).display().to_string());
        assert_eq!(name("node_modules/@napi/canvas/skia.node").as_deref(), Some("@napi/canvas 0.1.53"));
        assert_eq!(name("node_modules/left/index.js").as_deref(), Some("left"));
        assert_eq!(name("site-packages/lxml/etree.so").as_deref(), Some("lxml 4.9.2"));
        assert_eq!(name("site-packages/yaml/_yaml.so").as_deref(), Some("PyYAML 6.0"));
        assert_eq!(name("site-packages/ujson.cpython-311.so").as_deref(), Some("ujson 5.9.0"));
        assert_eq!(name("site-packages/aho.so").as_deref(), Some("py-aho 1.1.7"));
        assert_eq!(name("site-packages/aho2.so").as_deref(), Some("aho2"));
        assert_eq!(name("site-packages/other/f.py").as_deref(), Some("other"));
        assert_eq!(name("bin/prog"), None);
    }
}
