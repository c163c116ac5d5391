//! Forks and ends of processes, and the heirs of an ended process's blocks.
//!
//! A forked child has a copy of all blocks that its parent had then. While the parent lives, blocks
//! are counted once, as the parent's: the pages are shared. When the parent ends, they pass to the
//! child that was forked last (the heir). The heir may free them. They end with the heir, unless
//! another child inherits them.
//!
//! ```text
//! parent   ────A────B──────┤ ends        A: passes to the child, until that frees it or ends
//!               └ fork                   B: ends with the parent, as the child has no copy of it
//! child         ────────────────────
//! ```

use std::collections::{HashMap, HashSet};

use heapr_trace::{HeapId, ProcessIndex};

/// A process that inherits blocks of an ended process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heir {
    pub(crate) process: ProcessIndex,
    /// Time of the fork: the heir has copies of blocks allocated until then.
    pub(crate) until_ns: u64,
}

/// Blocks that have a new holder, or no holder any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Process that allocated the blocks.
    pub(crate) owner: ProcessIndex,
    /// Previous holder; `None` if the owner itself held them until now.
    pub(crate) before: Option<Heir>,
    pub(crate) heir: Option<Heir>,
}

/// Forks, ends and heirs of all processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    parents: HashMap<ProcessIndex, ProcessIndex>,
    /// Forked children of each process, with the times of the forks.
    children: HashMap<ProcessIndex, Vec<(ProcessIndex, u64)>>,
    ended: HashSet<ProcessIndex>,
    /// Heir of each ended process.
    heirs: HashMap<ProcessIndex, Heir>,
    /// Copies that each forked child has freed.
    freed_copies: HashMap<ProcessIndex, HashSet<(HeapId, u64)>>,
}

impl Family {
    /// Adds a fork.
    pub(crate) fn add(&mut self, child: ProcessIndex, parent: ProcessIndex, start_ns: u64) {
        // A file may claim anything; a parent's number is smaller than its child's.
        if parent < child && self.parents.insert(child, parent).is_none() {
            self.children.entry(parent).or_default().push((child, start_ns));
        }
    }

    /// The forks alone, as if no process had ended.
    pub(crate) fn at_start(&self) -> Self {
        Self { parents: self.parents.clone(), children: self.children.clone(), ..Self::default() }
    }

    pub(crate) fn is_forked(&self, process: ProcessIndex) -> bool {
        self.parents.contains_key(&process)
    }

    /// The heir of an ended process's blocks.
    pub(crate) fn heir(&self, owner: ProcessIndex) -> Option<Heir> {
        self.heirs.get(&owner).copied()
    }

    pub(crate) fn has_ended(&self, process: ProcessIndex) -> bool {
        self.ended.contains(&process)
    }

    /// The processes of whose blocks a process has copies, the nearest first.
    pub(crate) fn ancestors(&self, process: ProcessIndex) -> impl Iterator<Item = ProcessIndex> + '_ {
        std::iter::successors(self.parents.get(&process), |parent| self.parents.get(parent)).copied()
    }

    /// Records that a forked child has freed its copy of a block.
    pub(crate) fn note_freed_copy(&mut self, process: ProcessIndex, heap: HeapId, address_avma: u64) {
        self.freed_copies.entry(process).or_default().insert((heap, address_avma));
    }

    /// Whether a forked child has freed its copy of a block.
    pub(crate) fn has_freed_copy(&self, process: ProcessIndex, heap: HeapId, address_avma: u64) -> bool {
        self.freed_copies.get(&process).is_some_and(|freed| freed.contains(&(heap, address_avma)))
    }

    /// Ends a process. Returns the new holders of its blocks, and of those that it had inherited.
    pub(crate) fn end(&mut self, process: ProcessIndex) -> Vec<Passed> {
        if !self.ended.insert(process) {
            return Vec::new();
        }
        let mut owners = vec![process];
        owners.extend(self.heirs.iter().filter(|(_, heir)| heir.process == process).map(|(owner, _)| *owner));
        owners.sort_unstable();
        let pass = |owner: ProcessIndex| {
            let before = self.heir(owner);
            Passed { owner, before, heir: self.find_heir(owner) }
        };
        let passed: Vec<Passed> = owners.into_iter().map(pass).collect();
        for &Passed { owner, heir, .. } in &passed {
            match heir {
                Some(heir) => self.heirs.insert(owner, heir),
                None => self.heirs.remove(&owner),
            };
        }
        passed
    }

    /// Forgets the copies that an ended process has freed.
    pub(crate) fn forget_freed_copies(&mut self, process: ProcessIndex) {
        self.freed_copies.remove(&process);
    }

    /// The living process with copies of most of the owner's blocks: the one that was forked last.
    fn find_heir(&self, owner: ProcessIndex) -> Option<Heir> {
        let of = |parent: ProcessIndex| self.children.get(&parent).into_iter().flatten().copied();
        let mut left: Vec<(ProcessIndex, u64)> = of(owner).collect();
        let mut found: Option<Heir> = None;
        while let Some((process, until_ns)) = left.pop() {
            if self.has_ended(process) {
                // Its children have copies of its copies.
                left.extend(of(process).map(|(child, _)| (child, until_ns)));
                continue;
            }
            let is_more = |known: Heir| (known.until_ns, known.process) < (until_ns, process);
            if found.is_none_or(is_more) {
                found = Some(Heir { process, until_ns });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: [ProcessIndex; 4] = [ProcessIndex(0), ProcessIndex(1), ProcessIndex(2), ProcessIndex(3)];

    #[test]
    fn what_a_process_had_goes_on_in_the_child_forked_last_then_in_the_others() {
        let mut family = Family::default();
        family.add(P[1], P[0], 10);
        family.add(P[2], P[0], 20);
        family.add(P[3], P[1], 30);
        let heir = |process, until_ns| Some(Heir { process, until_ns });
        let passed = |owner, before, heir| Passed { owner, before, heir };
        assert_eq!(family.end(P[0]), [passed(P[0], None, heir(P[2], 20))]);
        // (The grandchild has the blocks that its parent had at the fork.)
        assert_eq!(family.end(P[1]), [passed(P[1], None, heir(P[3], 30))]);
        let both = [passed(P[0], heir(P[2], 20), heir(P[3], 10)), passed(P[2], None, None)];
        assert_eq!(family.end(P[2]), both);
        assert_eq!(family.end(P[3]).iter().filter(|passed| passed.heir.is_none()).count(), 3);
        assert_eq!(family.end(P[3]), [], "it ends once");
    }

    #[test]
    fn a_file_that_claims_a_circle_of_parents_is_no_trap() {
        let mut family = Family::default();
        family.add(P[1], P[2], 1);
        family.add(P[2], P[1], 1);
        family.add(P[2], P[2], 1);
        assert_eq!(family.ancestors(P[2]).count(), 1);
        family.end(P[1]);
        assert!(family.end(P[2]).iter().all(|passed| passed.heir.is_none()));
    }
}
