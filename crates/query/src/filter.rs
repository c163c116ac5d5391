//! Filters that select the allocations to count.

use heapr_trace::HeapId;

use crate::cull_list::CullList;
use crate::error::{Error, Result};
use crate::frame_pattern::FramePattern;
use crate::suppressions::Suppressions;

/// A half-open range of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start, inclusive.
    pub from: u64,
    /// End, exclusive.
    pub to: u64,
}

impl Span {
    /// Whether a value lies inside the range.
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        (self.from..self.to).contains(&value)
    }

    fn check(self, what: &'static str) -> Result<()> {
        if self.from < self.to {
            Ok(())
        } else {
            Err(Error::EmptyRange { what, from: self.from, to: self.to })
        }
    }
}

/// Allocation and free inside or outside the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationType {
    /// Allocated inside, freed inside: transient.
    Aifi,
    /// Allocated inside, freed after it or never: outstanding.
    Aifo,
    /// Allocated before, freed inside.
    Aofi,
    /// Allocated before, freed after it or never: live through all of it.
    Aofo,
}

impl AllocationType {
    /// Whether the allocation lies inside the range.
    #[must_use]
    pub fn is_allocated_inside(self) -> bool {
        matches!(self, Self::Aifi | Self::Aifo)
    }

    /// Whether the free lies inside the range.
    #[must_use]
    pub fn is_freed_inside(self) -> bool {
        matches!(self, Self::Aifi | Self::Aofi)
    }
}

/// A moment at which live blocks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The moment at which the chosen processes, heaps, threads and sizes held most.
    Peak,
    /// The moment after the events at this time.
    At {
        /// Nanoseconds since the session's start.
        time_ns: u64,
    },
    /// A snapshot of the file: its processes, and the blocks that they held at its moment.
    Snapshot {
        /// Number of the snapshot.
        number: u32,
    },
}

/// A thread, by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadChoice {
    /// Thread id.
    Tid(u32),
    /// Name; `*` stands for any run of characters, case does not matter.
    Name(String),
}

/// Condition on a stack's innermost frame, for which rankings by frame and by module count the
/// stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnermostFrames {
    /// Patterns of which the innermost frame must match at least one.
    pub patterns: Vec<FramePattern>,
    /// Frames that are culled before.
    pub cull: CullList,
}

/// Conditions on the allocations to count. All of them must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Process ids; empty for all.
    pub pids: Vec<u32>,
    /// Heaps; empty for all.
    pub heaps: Vec<HeapId>,
    /// Allocating threads; empty for all.
    pub threads: Vec<ThreadChoice>,
    /// Range of times (ns since the session's start) of the events that are considered.
    pub range: Option<Span>,
    /// Nanoseconds from allocation to free, or to the end of the trace or range.
    pub lifetime: Option<Span>,
    /// Requested bytes.
    pub size: Option<Span>,
    /// A moment: only blocks live then count, as if the trace ended there.
    pub at: Option<Moment>,
    /// Counts only blocks that their thread freed before its next allocation, both inside the
    /// range.
    pub is_temporary_only: bool,
    /// Type relative to the range.
    pub allocation_type: Option<AllocationType>,
    /// Patterns of which at least one must match at least one frame; empty for no condition.
    pub required_frames: Vec<FramePattern>,
    /// Condition on the innermost frame after culling.
    pub innermost: Option<InnermostFrames>,
    /// Rules whose matching stacks are left out; empty for no condition.
    pub left_out: Suppressions,
}

impl Filter {
    /// The conditions on frames alone.
    #[must_use]
    pub fn of_frames(&self) -> Self {
        Self {
            required_frames: self.required_frames.clone(),
            innermost: self.innermost.clone(),
            left_out: self.left_out.clone(),
            ..Self::default()
        }
    }

    /// Whether every stack passes the conditions on frames.
    #[must_use]
    pub fn takes_all_stacks(&self) -> bool {
        self.required_frames.is_empty() && self.innermost.is_none() && self.left_out.is_empty()
    }

    /// Whether the conditions on frames need symbols.
    #[must_use]
    pub(crate) fn needs_symbols(&self) -> bool {
        let of_innermost = |innermost: &InnermostFrames| {
            innermost.cull.needs_symbols() || innermost.patterns.iter().any(FramePattern::needs_symbol)
        };
        !self.left_out.is_empty()
            || self.required_frames.iter().any(FramePattern::needs_symbol)
            || self.innermost.as_ref().is_some_and(of_innermost)
    }

    /// Whether a block's birth decides that it is counted. If so, the peak is the largest sum of
    /// the counted blocks. Otherwise the peak is that of the blocks chosen by process, heap,
    /// thread, range and size, and the counted blocks have a share in it.
    #[must_use]
    pub fn is_known_at_birth(&self) -> bool {
        self.lifetime.is_none()
            && !self.is_temporary_only
            && self.allocation_type.is_none()
            && self.takes_all_stacks()
    }

    /// Whether frees of blocks that were never seen allocated are counted. This requires that no
    /// condition concerns the blocks themselves, and that the range starts at 0.
    #[must_use]
    pub fn counts_unknown_frees(&self) -> bool {
        self.is_known_at_birth() && self.size.is_none() && self.range.is_none_or(|range| range.from == 0)
    }

    /// Refuses filters that make no sense.
    ///
    /// # Errors
    /// An empty range, or filters that exclude each other.
    pub fn check(&self) -> Result<()> {
        for (what, span) in [("range", self.range), ("lifetime", self.lifetime), ("size", self.size)] {
            if let Some(span) = span {
                span.check(what)?;
            }
        }
        let contradiction = |first, second, reason| Err(Error::Contradiction { first, second, reason });
        if self.at.is_some() && self.is_temporary_only {
            return contradiction("--at", "--temporary", "what is live then has not been freed yet");
        }
        if self.at.is_some() && self.allocation_type.is_some() {
            return contradiction("--at", "--type", "a type looks at a range, not at a moment");
        }
        if self.is_temporary_only && self.allocation_type.is_some_and(|kind| !kind.is_allocated_inside()) {
            return contradiction(
                "--temporary",
                "--type aofi|aofo",
                "what is temporary lies inside the range",
            );
        }
        if matches!(self.at, Some(Moment::Snapshot { .. })) && self.range.is_some() {
            return contradiction(
                "--snapshot",
                "--range",
                "a snapshot is of one moment; --lifetime chooses by age",
            );
        }
        if let (Some(Moment::At { time_ns }), Some(range)) = (self.at, self.range)
            && !range.contains(time_ns)
        {
            return contradiction("--at", "--range", "the moment lies outside the range");
        }
        if self.allocation_type.is_some_and(|kind| !kind.is_allocated_inside()) && self.range.is_none() {
            return contradiction(
                "--type aofi|aofo",
                "no --range",
                "nothing is allocated outside the whole trace",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_reason() {
        let refused = |filter: Filter| filter.check().unwrap_err().to_string();
        assert_eq!(
            refused(Filter { size: Some(Span { from: 8, to: 8 }), ..Filter::default() }),
            "the size 8..8 is empty: its end must be greater than its start"
        );
        assert_eq!(
            refused(Filter { at: Some(Moment::Peak), is_temporary_only: true, ..Filter::default() }),
            "--at can't be combined with --temporary: what is live then has not been freed yet"
        );
        assert!(
            refused(Filter { allocation_type: Some(AllocationType::Aofo), ..Filter::default() })
                .contains("--range")
        );
    }
}
