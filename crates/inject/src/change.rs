//! Mutual exclusion of changes to a process's code. A detach removes what its record lists, so that
//! nothing may be added meanwhile.

use std::sync::{Condvar, Mutex, PoisonError};

/// Processes that are being changed at present; only a few at a time.
static CHANGED: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static IS_OVER: Condvar = Condvar::new();

/// Exclusive right of this program's threads to change a process, until dropped.
pub(crate) struct Change {
    pid: u32,
}

impl Change {
    /// Waits for the right to change the process.
    pub(crate) fn begin(pid: u32) -> Self {
        let changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = IS_OVER
            .wait_while(changed, |changed| changed.contains(&pid))
            .unwrap_or_else(PoisonError::into_inner);
        changed.push(pid);
        Self { pid }
    }

    /// Acquires the right without waiting. `None`: another thread is changing the process, and may
    /// itself wait for the caller.
    pub(crate) fn try_begin(pid: u32) -> Option<Self> {
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.contains(&pid) {
            return None;
        }
        changed.push(pid);
        Some(Self { pid })
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|&pid| pid != self.pid);
        IS_OVER.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_changed_by_one_at_a_time_and_others_meanwhile() {
        let first = Change::begin(1);
        let other = Change::begin(2);
        assert!(Change::try_begin(1).is_none());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| drop(Change::begin(1)));
            drop((first, other));
            waits.join().unwrap();
        });
        let changed = CHANGED.lock().unwrap();
        assert!(!changed.contains(&1) && !changed.contains(&2));
    }
}
