//! A heap of a running .NET: the runtime collects garbage, and tells its objects by events.
//!
//! ```text
//!  heapr                                         the runtime
//!  a session without types                 ->    forgets which types it has told before
//!  CollectTracing2: provider, keywords     ->    collects, stops its threads, walks the heap
//!  reads events                            <-    types, objects, references, roots, statics
//!  StopTracing                             ->    ends the stream
//! ```
//! If heapr ends in between, the runtime ends the session as soon as it cannot write.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use heapr_proc::Fields;

use super::error::DotnetError;
use super::live_graph;
use super::socket::DotnetProcess;
use super::static_classes;
use super::stream::Stream;
use super::walk::Walk;
use crate::dump_error::DumpError;
use crate::dumped_heap::DumpedHeap;

/// Commands: set of commands in the upper byte.
const STOP_TRACING: u16 = 0x0201;
const COLLECT_TRACING: u16 = 0x0202;
const COLLECT_TRACING_2: u16 = 0x0203;
/// Collections, their types with names, the heap at a collection, and a collection now.
const KEYWORDS: u64 = 0x1_980_001;
const VERBOSE: u32 = 5;
/// Collections alone, and the level at which nothing is told of single objects.
const KEYWORDS_WITHOUT_TYPES: u64 = 1;
const INFORMATIONAL: u32 = 4;
/// Form of the stream: nettrace.
const NETTRACE: u32 = 1;
const PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";
/// Smallest and largest size of the runtime's buffers, in MiB.
const BUFFERS: std::ops::RangeInclusive<u64> = 64..=16 << 10;
/// Shortest time after which a heap that is not told is given up.
const ANSWER_AT_LEAST: Duration = Duration::from_secs(60);
/// Longest wait for the rest of a stream that was stopped.
const END_WAIT: Duration = Duration::from_secs(10);

/// Heap of a running .NET.
#[derive(Debug)]
pub struct DotnetHeap {
    /// Heap as a snapshot.
    pub heap: DumpedHeap,
    /// Time for which the threads stood still, as the runtime's events tell it.
    pub pause: Option<Duration>,
    /// Bytes of events.
    pub event_bytes: u64,
}

/// Events of a connection, up to a moment and a size.
struct Timed {
    stream: UnixStream,
    end: Instant,
    bytes: u64,
    bytes_max: u64,
}

impl Read for &mut Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.bytes > self.bytes_max {
            return Err(io::Error::other("there are more events than a process of its size can have"));
        }
        self.stream.set_read_timeout(Some(rest))?;
        let count = (&self.stream).read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

impl DotnetHeap {
    /// Takes the heap. `room_bytes` is what the events may need in the process, at most. A runtime
    /// that takes four times `max_pause` is given up.
    ///
    /// # Errors
    /// The runtime refuses, loses events, or its events cannot be read.
    pub fn of(process: &DotnetProcess, room_bytes: u64, max_pause: Duration) -> Result<Self, DotnetError> {
        let room_bytes = room_bytes.max(*BUFFERS.start() << 20);
        check_room(process.pid, room_bytes)?;
        let buffer_mib = (room_bytes >> 20).clamp(*BUFFERS.start(), *BUFFERS.end()) as u32;
        let longest = max_pause.saturating_mul(4).max(ANSWER_AT_LEAST);
        // A runtime tells each type once, also to sessions that come soon after one another.
        let (session, stream) =
            begin(process, *BUFFERS.start() as u32, KEYWORDS_WITHOUT_TYPES, INFORMATIONAL)?;
        stop(process, session, &mut Timed { stream, end: Instant::now(), bytes: 0, bytes_max: u64::MAX })?;
        let (session, stream) = begin(process, buffer_mib, KEYWORDS, VERBOSE)?;
        let bytes_max = event_bytes_max(process.pid, room_bytes);
        let mut timed = Timed { stream, end: Instant::now() + longest, bytes: 0, bytes_max };
        let mut walk = Walk::default();
        let read = walked(&mut timed, &mut walk);
        // Also after an error: the runtime must not go on to write.
        let stopped = stop(process, session, &mut timed);
        read.map_err(|error| timed_out(error, longest))?;
        walk.check()?;
        stopped?;
        let assemblies = static_classes::assemblies(process.pid);
        static_classes::name(&assemblies, &mut walk.statics);
        let mut notes = Vec::new();
        let unnamed = walk.type_ids.iter().filter(|id| !walk.types.contains_key(id)).count();
        if unnamed > 0 {
            notes.push(format!(
                "{unnamed} objects have types that were not told: perhaps another tool reads its events"
            ));
        }
        let unnamed = walk.statics.iter().filter(|variable| variable.class.is_none()).count();
        if unnamed > 0 {
            notes.push(format!(
                "{unnamed} of {} static variables are of classes that their names do not tell",
                walk.statics.len()
            ));
        }
        let pause = walk.pause_ns.map(Duration::from_nanos);
        let objects = live_graph::build(&mut walk, &assemblies)?;
        if objects.contradictions > 0 {
            notes.push(format!(
                "{} objects have references that do not fit the fields of their classes, and have no names",
                objects.contradictions
            ));
        }
        let snapshot = objects.snapshot(&process.runtime())?;
        Ok(Self { heap: DumpedHeap { snapshot, notes, cut_at: None }, pause, event_bytes: timed.bytes })
    }
}

/// Checks that the process may have the memory that its events need, and the machine has it.
fn check_room(pid: u32, needed_bytes: u64) -> Result<(), DotnetError> {
    let of_groups = heapr_proc::memory_limits(pid).into_iter().map(|limit| limit.free_bytes);
    match of_groups.chain(Fields::of_machine().bytes("MemAvailable")).min() {
        Some(free_bytes) if free_bytes < needed_bytes => {
            Err(DotnetError::NoRoom { needed_bytes, free_bytes })
        }
        _ => Ok(()),
    }
}

/// Largest size of the events of an honest runtime. A reference of 8 bytes is told by 12, and an
/// object of 24 bytes by 32. What is swapped out is told, too.
fn event_bytes_max(pid: u32, resident_bytes: u64) -> u64 {
    let swapped_bytes = Fields::of_process(pid).ok().and_then(|fields| fields.bytes("VmSwap")).unwrap_or(0);
    resident_bytes.saturating_add(swapped_bytes).saturating_mul(4).saturating_add(1 << 30)
}

/// Begins a session. Returns its number, and the connection that the events come by.
fn begin(
    process: &DotnetProcess,
    buffer_mib: u32,
    keywords: u64,
    level: u32,
) -> Result<(u64, UnixStream), DotnetError> {
    let contents = |without_rundown: &[u8]| {
        let mut contents = Vec::new();
        contents.extend(buffer_mib.to_le_bytes());
        contents.extend(NETTRACE.to_le_bytes());
        contents.extend(without_rundown);
        contents.extend(1_u32.to_le_bytes());
        contents.extend(keywords.to_le_bytes());
        contents.extend(level.to_le_bytes());
        contents.extend((PROVIDER.len() as u32 + 1).to_le_bytes());
        contents.extend(PROVIDER.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        contents.extend(0_u32.to_le_bytes());
        contents
    };
    let begun = match process.command(COLLECT_TRACING_2, &contents(&[0])) {
        // Versions before 3.1 know the first form alone.
        Err(DotnetError::Refused { .. }) => process.command(COLLECT_TRACING, &contents(&[]))?,
        other => other?,
    };
    let (answer, stream) = begun;
    let session = answer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let session = session.ok_or(DotnetError::Refused { command: COLLECT_TRACING_2, code: 0 })?;
    Ok((session, stream))
}

/// Reads events until the heap was walked.
fn walked(timed: &mut Timed, walk: &mut Walk) -> Result<(), DumpError> {
    let mut stream = Stream::begin(io::BufReader::with_capacity(1 << 20, timed))?;
    stream.read(|event| walk.event(event))
}

/// Ends a session, and reads its rest.
fn stop(process: &DotnetProcess, session: u64, timed: &mut Timed) -> Result<(), DotnetError> {
    (timed.end, timed.bytes_max) = (Instant::now() + END_WAIT, u64::MAX);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| process.command(STOP_TRACING, &session.to_le_bytes()));
        // The answer comes when all is written.
        let _ = io::copy(&mut &mut *timed, &mut io::sink());
        let ended = Err(DotnetError::NoAnswer { seconds: END_WAIT.as_secs() });
        asked.join().map_or(ended, |answer| answer.map(drop))
    })
}

/// Error of a stream that took too long.
fn timed_out(error: DumpError, longest: Duration) -> DotnetError {
    match error {
        DumpError::Io { ref source, .. }
            if matches!(source.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) =>
        {
            DotnetError::NoAnswer { seconds: longest.as_secs() }
        }
        other => DotnetError::Events(other),
    }
}
