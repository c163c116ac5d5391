//! The path of a stack of native and language frames, while it is joined.

use core::sync::atomic::Ordering::Relaxed;

use heapr_ring::Pool;

use crate::modules;
use crate::state::AGENT;
use crate::tree;

/// The path so far, from the outermost frame on.
pub(crate) struct Path {
    /// Number of outermost frames to leave out, for a session that limits the depth.
    skipped: usize,
    count: usize,
    hash: u64,
    node: u32,
    /// The innermost frame so far, which has no node yet.
    pending: u64,
    is_lost: bool,
}

impl Path {
    /// Begins a path that will have `total` frames.
    pub(crate) fn of_frames(total: usize) -> Self {
        let max =
            AGENT.pool().map(Pool::control).map_or(0, |control| control.max_frames.load(Relaxed)) as usize;
        let skipped = if max == 0 { 0 } else { total.saturating_sub(max) };
        Self { skipped, count: 0, hash: tree::ROOT_HASH, node: tree::ROOT, pending: 0, is_lost: false }
    }

    /// Adds the frame inwards of the last one.
    pub(crate) fn add(&mut self, return_address: u64) {
        if self.skipped != 0 {
            self.skipped = self.skipped.wrapping_sub(1);
            return;
        }
        if self.pending != 0 {
            self.hash = tree::path_hash(self.hash, self.count, self.pending, modules::salt());
            self.count = self.count.wrapping_add(1);
            let found = tree::find(self.hash).or_else(|| tree::add(self.node, self.pending, self.hash));
            self.is_lost |= found.is_none();
            self.node = found.unwrap_or(tree::ROOT);
        }
        self.pending = return_address;
    }

    /// Makes the node of the whole path, which is found by `pair` from here on.
    pub(crate) fn finish(self, pair: u64) -> Option<u32> {
        if self.is_lost || self.pending == 0 {
            return None;
        }
        tree::add(self.node, self.pending, pair)
    }
}
