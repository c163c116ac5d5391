//! Captures with low overhead: the sampling profile (`.heapprofile`), and the allocation timeline
//! (`.heaptimeline`).

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::connection::{Connection, Isolate, Patience};
use super::error::Result;
use super::message::parse_value;
use super::snapshot::{Delivery, SnapshotOptions, TakenSnapshot, stream};

/// Options of a sampling profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingOptions {
    /// Mean number of allocated bytes per sample.
    pub interval_bytes: u64,
    /// Largest number of frames per stack.
    pub depth_max: u32,
    /// Whether collected objects count as well: all allocations instead of only live objects.
    pub has_collected: bool,
}

impl Default for SamplingOptions {
    /// Returns V8's own defaults.
    fn default() -> Self {
        Self { interval_bytes: 32_768, depth_max: 128, has_collected: false }
    }
}

pub(crate) fn sample(
    connection: &mut Connection,
    isolate: &Isolate,
    options: SamplingOptions,
    until: Instant,
    wait: Duration,
    is_cancelled: &AtomicBool,
) -> Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        profile: &'a RawValue,
    }
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    connection.call(isolate, "HeapProfiler.enable", &json!({}), patience, &mut |_, _| Ok(()))?;
    let params = json!({
        "samplingInterval": options.interval_bytes.max(1),
        "stackDepth": options.depth_max.max(1),
        "includeObjectsCollectedByMajorGC": options.has_collected,
        "includeObjectsCollectedByMinorGC": options.has_collected,
    });
    connection.call(isolate, "HeapProfiler.startSampling", &params, patience, &mut |_, _| Ok(()))?;
    connection.listen(isolate, until, is_cancelled, &mut |_, _| Ok(()))?;
    // The flag only ended the sampling; the profile is still wanted.
    let never = AtomicBool::new(false);
    let patience = Patience { is_cancelled: &never, ..patience };
    let answer =
        connection.call(isolate, "HeapProfiler.stopSampling", &json!({}), patience, &mut |_, _| Ok(()))?;
    Ok(parse_value::<Answer<'_>>(&answer)?.profile.get().as_bytes().to_vec())
}

pub(crate) fn record_timeline(
    connection: &mut Connection,
    isolate: &Isolate,
    options: SnapshotOptions,
    until: Instant,
    wait: Duration,
    delivery: Delivery<'_>,
) -> Result<TakenSnapshot> {
    let is_cancelled = delivery.is_cancelled;
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    connection.call(isolate, "HeapProfiler.enable", &json!({}), patience, &mut |_, _| Ok(()))?;
    if options.collects_garbage_first {
        connection.call(isolate, "HeapProfiler.collectGarbage", &json!({}), patience, &mut |_, _| Ok(()))?;
    }
    let params = json!({ "trackAllocations": true });
    connection
        .call(isolate, "HeapProfiler.startTrackingHeapObjects", &params, patience, &mut |_, _| Ok(()))?;
    connection.listen(isolate, until, is_cancelled, &mut |_, _| Ok(()))?;
    let never = AtomicBool::new(false);
    let params = json!({
        "reportProgress": true,
        "captureNumericValue": options.has_numeric_values,
        "exposeInternals": options.exposes_internals,
    });
    let Delivery { sink, on_progress, .. } = delivery;
    let delivery = Delivery { sink, on_progress, is_cancelled: &never };
    stream(connection, isolate, "HeapProfiler.stopTrackingHeapObjects", &params, delivery)
}
