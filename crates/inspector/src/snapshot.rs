//! Snapshot over the protocol, from the request to the last chunk.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::connection::{Connection, Isolate, Patience};
use super::error::{Error, Result};
use super::message::{ChunkParams, ProgressParams, parse_value, string_bytes_into};
use super::write_behind::write_behind;

/// Longest time without a message. The thread reports its progress continuously, except while it
/// collects garbage or swaps.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(900);

/// Options of a snapshot.
#[derive(Debug, Clone, Copy, Default)]
pub struct SnapshotOptions {
    /// Whether garbage is collected first. V8 also collects by itself, but without the garbage that
    /// only a second round finds.
    pub collects_garbage_first: bool,
    /// Whether numbers get nodes of their own, with their values.
    pub has_numeric_values: bool,
    /// Whether V8's own objects are shown as they are.
    pub exposes_internals: bool,
}

/// Progress of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotProgress {
    /// V8 traverses the heap.
    Building {
        /// Number of traversed objects.
        done: u64,
        /// Number of expected objects.
        total: u64,
    },
    /// The snapshot is arriving.
    Writing {
        /// Number of bytes so far.
        bytes: u64,
    },
}

/// Snapshot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenSnapshot {
    /// Size in bytes.
    pub bytes: u64,
    /// Time from the request to the first byte, during which V8 traversed the heap.
    pub until_first_byte: Duration,
    /// Time from the request to the end, during which the thread did nothing else.
    pub pause: Duration,
}

/// Destination of a snapshot that arrives, receiver of its progress, and the flag that ends it.
pub(crate) struct Delivery<'a> {
    pub(crate) sink: &'a mut (dyn Write + Send),
    pub(crate) on_progress: &'a mut dyn FnMut(SnapshotProgress),
    pub(crate) is_cancelled: &'a AtomicBool,
}

/// Takes a snapshot of an isolate and writes it as it arrives.
pub(crate) fn take(
    connection: &mut Connection,
    isolate: &Isolate,
    options: SnapshotOptions,
    delivery: Delivery<'_>,
) -> Result<TakenSnapshot> {
    let is_cancelled = delivery.is_cancelled;
    let patience = Patience { silence_max: SILENCE_MAX, deadline: None, is_cancelled };
    connection.call(isolate, "HeapProfiler.enable", &json!({}), patience, &mut |_, _| Ok(()))?;
    if options.collects_garbage_first {
        connection.call(isolate, "HeapProfiler.collectGarbage", &json!({}), patience, &mut |_, _| Ok(()))?;
    }
    let params = json!({
        "reportProgress": true,
        "captureNumericValue": options.has_numeric_values,
        "exposeInternals": options.exposes_internals,
    });
    stream(connection, isolate, "HeapProfiler.takeHeapSnapshot", &params, delivery)
}

/// Sends a request that is answered by the chunks of a snapshot, and writes them as they arrive.
pub(crate) fn stream(
    connection: &mut Connection,
    isolate: &Isolate,
    method: &str,
    params: &Value,
    delivery: Delivery<'_>,
) -> Result<TakenSnapshot> {
    let Delivery { sink, on_progress, is_cancelled } = delivery;
    let patience = Patience { silence_max: SILENCE_MAX, deadline: None, is_cancelled };
    let started = Instant::now();
    let mut first_byte = None;
    let taken = write_behind(sink, |behind| {
        connection.call_for_stream(isolate, method, params, patience, &mut |event, params| {
            match event {
                "HeapProfiler.addHeapSnapshotChunk" => {
                    first_byte.get_or_insert_with(|| started.elapsed());
                    let before = behind.block().len();
                    string_bytes_into(parse_value::<ChunkParams<'_>>(params)?.chunk, behind.block())?;
                    // The writer's own error is more specific.
                    behind.appended(before).map_err(|_| Error::Cancelled)?;
                    on_progress(SnapshotProgress::Writing { bytes: behind.bytes() });
                }
                "HeapProfiler.reportHeapSnapshotProgress" => {
                    let ProgressParams { done, total } = parse_value(params)?;
                    on_progress(SnapshotProgress::Building { done, total });
                }
                _ => {}
            }
            Ok(())
        })?;
        let pause = started.elapsed();
        let end = behind.tail();
        if !is_end(&end) {
            return Err(Error::NotWhole { end: String::from_utf8_lossy(&end).into_owned() });
        }
        Ok(TakenSnapshot { bytes: behind.bytes(), until_first_byte: first_byte.unwrap_or(pause), pause })
    });
    taken.map_err(|source| Error::Write { source })?
}

/// Whether the bytes can be the end of a snapshot: the end of the list of strings and of the object
/// that contains it.
pub(crate) fn is_end(end: &[u8]) -> bool {
    let mut meaningful = end.iter().rev().filter(|byte| !byte.is_ascii_whitespace());
    meaningful.next() == Some(&b'}') && matches!(meaningful.next(), Some(b']' | b'}'))
}

#[cfg(test)]
mod tests {
    use super::is_end;

    #[test]
    fn a_snapshot_ends_with_its_strings() {
        assert!(is_end(b"\"b\"]}") && is_end(b"\"b\"\n]\n}\n") && is_end(b"{}}"));
        assert!(!is_end(b"") && !is_end(b"}") && !is_end(b"\"]") && !is_end(b"1,2,"));
    }
}
