//! Which allocations are counted.

use heapr_trace::HeapId;

use crate::cull_list::CullList;
use crate::error::{Error, Result};
use crate::frame_pattern::FramePattern;
use crate::suppressions::Suppressions;

/// A half-open range: from the first to just below the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First that is in.
    pub from: u64,
    /// First that is out.
    pub to: u64,
}

impl Span {
    /// Whether a value lies inside.
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

/// Allocated and freed inside or outside the range.
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

/// A moment at which to look at what is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// When the chosen processes, heaps, threads and sizes held most.
    Peak,
    /// After the events at this time.
    At {
        /// Nanoseconds since the session's start.
        time_ns: u64,
    },
    /// In a snapshot of the file: of its processes, and of what they held at its moment.
    Snapshot {
        /// Its number.
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

/// Which frames a stack may end in: those that rankings by frame and by module count it for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnermostFrames {
    /// The innermost frame must match at least one of them.
    pub patterns: Vec<FramePattern>,
    /// What is removed before.
    pub cull: CullList,
}

/// Which allocations are counted. All that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Process ids; empty: all.
    pub pids: Vec<u32>,
    /// Heaps; empty: all.
    pub heaps: Vec<HeapId>,
    /// Allocating threads; empty: all.
    pub threads: Vec<ThreadChoice>,
    /// Only events inside this range of times (ns since the session's start) are looked at.
    pub range: Option<Span>,
    /// Nanoseconds from allocation to free, or to the end of the trace or range.
    pub lifetime: Option<Span>,
    /// Bytes asked for.
    pub size: Option<Span>,
    /// Only what is live at a moment, as though the trace ended there.
    pub at: Option<Moment>,
    /// Only what the thread that made it freed again before it made another, both inside the range.
    pub is_temporary_only: bool,
    /// Only this type, against the range.
    pub allocation_type: Option<AllocationType>,
    /// At least one frame of the stack must match at least one of them; empty: no matter.
    pub required_frames: Vec<FramePattern>,
    /// What the innermost frame must be, once culling is done.
    pub innermost: Option<InnermostFrames>,
    /// Stacks that none of these rules matches; empty: no matter.
    pub left_out: Suppressions,
}

impl Filter {
    /// What it says of frames, and nothing else.
    #[must_use]
    pub fn of_frames(&self) -> Self {
        Self {
            required_frames: self.required_frames.clone(),
            innermost: self.innermost.clone(),
            left_out: self.left_out.clone(),
            ..Self::default()
        }
    }

    /// Whether no stack is left out for its frames.
    #[must_use]
    pub fn takes_all_stacks(&self) -> bool {
        self.required_frames.is_empty() && self.innermost.is_none() && self.left_out.is_empty()
    }

    /// Whether frames need names to choose stacks.
    #[must_use]
    pub(crate) fn needs_symbols(&self) -> bool {
        let of_innermost = |innermost: &InnermostFrames| {
            innermost.cull.needs_symbols() || innermost.patterns.iter().any(FramePattern::needs_symbol)
        };
        !self.left_out.is_empty()
            || self.required_frames.iter().any(FramePattern::needs_symbol)
            || self.innermost.as_ref().is_some_and(of_innermost)
    }

    /// Whether a block's birth tells that it is counted: then the peak is the largest sum of what
    /// is counted. Else it is that of all that process, heap, thread, range and size choose,
    /// and what is counted has a share in it.
    #[must_use]
    pub fn is_known_at_birth(&self) -> bool {
        self.lifetime.is_none()
            && !self.is_temporary_only
            && self.allocation_type.is_none()
            && self.takes_all_stacks()
    }

    /// Whether frees of blocks that were never seen allocated count: nothing is asked of the blocks
    /// themselves, and no block was allocated before what is looked at.
    #[must_use]
    pub fn counts_unknown_frees(&self) -> bool {
        self.is_known_at_birth() && self.size.is_none() && self.range.is_none_or(|range| range.from == 0)
    }

    /// Looks for what can't be meant.
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
