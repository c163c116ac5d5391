//! How a snapshot was taken.

/// Whether V8 was asked to show its own objects. The two kinds of snapshots have other sizes,
/// distances and roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureMode {
    /// As `v8.writeHeapSnapshot()` does it.
    Default,
    /// With `exposeInternals`, as DevTools itself does it now.
    ExposeInternals,
}
