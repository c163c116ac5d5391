//! Finds circles among the modules of the page: files of `ui/src` that import one another.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

/// Extensions that an import may leave off.
const EXTENSIONS: [&str; 2] = ["ts", "tsx"];

/// Returns each circle of imports below a folder, as its files joined by arrows.
pub(crate) fn circles(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut imports: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in sources(folder)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let found = imported(&text).filter_map(|name| module(&path, name)).collect();
        imports.insert(path, found);
    }
    let mut found = Vec::new();
    for start in imports.keys() {
        if let Some(way) = way_back(start, &imports)
            && way.iter().min() == Some(start)
        {
            let names =
                way.iter().map(|file| file.strip_prefix(folder).unwrap_or(file).display().to_string());
            found.push(names.collect::<Vec<_>>().join(" -> "));
        }
    }
    Ok(found)
}

/// Returns all sources below a folder.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the names of the page's own modules that a source imports: the quoted text behind
/// `from`.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    text.split(" from '")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next())
        .filter(|name| name.starts_with('.'))
}

/// Returns the file that a name stands for in a source.
fn module(source: &Path, name: &str) -> Option<PathBuf> {
    let mut path = source.parent()?.to_owned();
    for part in Path::new(name).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    EXTENSIONS.iter().map(|extension| path.with_extension(extension)).find(|path| path.is_file())
}

/// Returns the shortest path from a file back to itself.
fn way_back(start: &PathBuf, imports: &BTreeMap<PathBuf, Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
    let mut before: BTreeMap<&PathBuf, &PathBuf> = BTreeMap::new();
    let mut next = std::collections::VecDeque::from([start]);
    while let Some(file) = next.pop_front() {
        for imported in imports.get(file)? {
            if imported == start {
                let mut way = vec![file.clone()];
                while way.last() != Some(start) {
                    way.push((*before.get(way.last()?)?).clone());
                }
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(imported) {
                before.insert(imported, file);
                next.push_back(imported);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn a_circle_is_told_once_and_a_line_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        write("a.ts", "import { b } from './in/b';");
        write("in/b.tsx", "import type { C } from '../c';\nimport { h } from 'preact';");
        write("c.ts", "export type C = 1;");
        assert_eq!(circles(folder.path()).unwrap(), Vec::<String>::new());
        write("c.ts", "import {\n  a,\n} from './a';");
        assert_eq!(circles(folder.path()).unwrap(), ["a.ts -> in/b.tsx -> c.ts"]);
    }
}
