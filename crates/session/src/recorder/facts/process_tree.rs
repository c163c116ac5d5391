//! Finds the descendants of a process.

use std::collections::HashSet;

use heapr_proc::{is_alive, parent, pids};

/// Returns the live descendants of `pid`, parents before children. This process and its ancestors
/// are left out: a shell that asks for all its children does not mean the asking process.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    descendants_of_all(&[pid])
}

/// Returns the live descendants of several processes without these themselves, as [`descendants`]
/// does for one. All processes of the machine are read once.
#[must_use]
pub fn descendants_of_all(pids_above: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let of = |pid: u32| parents.iter().find(|(child, _)| *child == pid).map(|&(_, parent)| parent);
    let mut left_out = HashSet::new();
    let mut above = Some(std::process::id());
    while let Some(pid) = above.filter(|&pid| left_out.insert(pid)) {
        above = of(pid);
    }
    let mut found = Vec::new();
    let mut seen: HashSet<u32> = pids_above.iter().copied().collect();
    let mut generation = seen.clone();
    while !generation.is_empty() {
        let is_child = |(child, parent): &&(u32, u32)| generation.contains(parent) && !seen.contains(child);
        let children: Vec<u32> = parents.iter().filter(is_child).map(|&(child, _)| child).collect();
        seen.extend(&children);
        found.extend(children.iter().filter(|pid| !left_out.contains(pid) && is_alive(**pid)));
        generation = children.into_iter().collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_theirs_are_found_and_whoever_asks_is_not() {
        let script = "sleep 60 & echo; wait";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let below = descendants(shell.id());
        assert_eq!(below.len(), 1, "{below:?}");
        let own = descendants(std::process::id());
        assert!(own.contains(&shell.id()) && own.contains(&below[0]), "{own:?}");
        assert_eq!(descendants_of_all(&[shell.id(), u32::MAX]), below);
        assert!(descendants_of_all(&[shell.id(), below[0]]).is_empty());
        let above = descendants(parent(std::process::id()).unwrap());
        assert!(!above.contains(&std::process::id()), "{above:?}");
        for pid in [below[0], shell.id()] {
            std::process::Command::new("kill").arg(pid.to_string()).status().unwrap();
        }
        shell.wait().unwrap();
        assert!(descendants(shell.id()).is_empty());
    }
}
