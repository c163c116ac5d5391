//! Capture mode of a snapshot.

/// Capture mode: whether the snapshot shows V8's own objects. The two modes differ in sizes,
/// distances and roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureMode {
    /// Mode of `v8.writeHeapSnapshot()`.
    Default,
    /// Mode with `exposeInternals`, which DevTools itself uses.
    ExposeInternals,
}
