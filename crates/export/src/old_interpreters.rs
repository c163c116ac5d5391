//! Interpreters whose frames are unknown, and which agents do not recognize: CPython before 3.7.

use std::collections::BTreeMap;

use heapr_query::file_name;
use heapr_trace::Trace;

/// First minor version of CPython 3 that agents recognize. They report unknown layouts themselves.
const FIRST_RECOGNIZED: u32 = 7;

/// Lines about old interpreters of a recording, with what would give the names of functions.
pub(crate) fn lines(trace: &Trace) -> Vec<String> {
    let programs = trace
        .processes()
        .iter()
        .map(|process| (process.name().to_owned(), format!("{} ({})", process.name(), process.pid)));
    let libraries = trace.modules().iter().map(|module| {
        let name = file_name(&module.path).to_owned();
        (name.strip_prefix("lib").unwrap_or(&name).to_owned(), name)
    });
    of_names(programs.chain(libraries))
}

/// Lines for files by their names, each with the words that name it.
fn of_names(names: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut old: BTreeMap<(u32, u32), String> = BTreeMap::new();
    for (name, words) in names {
        if let Some(version) = version(&name).filter(|&version| version < (3, FIRST_RECOGNIZED)) {
            old.entry(version).or_insert(words);
        }
    }
    let line = |((major, minor), words): ((u32, u32), String)| {
        format!(
            "{words}: stacks have no frames of Python {major}.{minor}; functions have names where the program runs on \
             CPython 3.8 or newer"
        )
    };
    old.into_iter().map(line).collect()
}

/// Version of a Python by the name of its program or library: `python3.6`, `python3.6m.so.1.0`.
fn version(name: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix("python")?;
    let (major, rest) = rest.split_once('.')?;
    let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
    // The rest is the kind of the build, or the library's own version.
    let is_known = ["", "m", "dm", "d"].contains(&rest[end..].split('.').next()?);
    Some((major.parse().ok()?, rest[..end].parse().ok()?)).filter(|_| is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_python_is_told_once_and_what_would_have_names() {
        let of =
            |names: &[&str]| of_names(names.iter().map(|name| ((*name).to_owned(), format!("{name} (7)"))));
        assert_eq!(
            of(&["bash", "python3.6", "python3.6m.so.1.0"]),
            [
                "python3.6 (7): stacks have no frames of Python 3.6; functions have names where the program runs on CPython \
              3.8 or newer"
            ]
        );
        assert_eq!(of(&["python2.7", "python3.6"]).len(), 2);
        assert!(
            of(&["python", "python3", "python3.7", "python3.11", "python3.6-config", "pythonx.y"]).is_empty()
        );
    }
}
