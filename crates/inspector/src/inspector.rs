//! Access to a process through its inspector: an open one, or the one that Node opens on SIGUSR1.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, Isolate, OnEvent, Patience};
use super::error::{Error, Result};
use super::listening_ports::{Listener, listeners_of};
use super::message::parse_value;
use super::network;
use super::port::{
    LAST_WAIT, LOOK_EVERY, OpenOptions, find_open, open_by_signal, refuse_without_signal, version,
};
use super::process::Process;
use super::profile::{self, SamplingOptions};
use super::scripts::{self, Script};
use super::signal_file::SnapshotSignal;
use super::signal_handler;
use super::snapshot::{self, Delivery, SnapshotOptions, SnapshotProgress, TakenSnapshot};
use super::target::{Target, choose, targets};
use super::v8_memory::{self, V8Memory};
use super::worker::{self, Worker};
use crate::own_scripts::CLOSE;
use heapr_known::runtimes::Runtime;

/// Time to wait for the thread to receive the request to close its port. A thread that is busy for
/// longer closes the port afterwards, because received requests outlive their connection.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Heap size reported by the isolate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapUsage {
    /// Bytes of live and not yet collected objects.
    pub used_bytes: u64,
    /// Bytes that V8 has allocated from the system for them.
    pub total_bytes: u64,
}

/// State of the port after closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The port was open before, and stays open.
    WasOpenBefore,
    /// heapr had opened the port, and it is closed.
    Closed,
    /// heapr had opened the port, and the process closes it as soon as its thread is free.
    Asked(SocketAddr),
    /// heapr had opened the port, and the process does not close it.
    StillOpen(SocketAddr),
}

/// Session with an inspector. Dropping it closes the port if heapr opened it.
#[derive(Debug)]
pub struct Inspector {
    process: Process,
    listener: Listener,
    target: Target,
    connection: Connection,
    wait: Duration,
    must_close: bool,
    node_major: Option<u32>,
}

impl Inspector {
    /// Connects to the open inspector of a process, or makes Node open one.
    pub fn open(process: &Process, options: &OpenOptions, is_cancelled: &AtomicBool) -> Result<Self> {
        if process.runtime == Runtime::Bun {
            return Err(Error::Bun { pid: process.pid });
        }
        process.refuse_standing_still()?;
        network::can_reach(process)?;
        let before = listeners_of(process)?;
        if let Some(listener) = find_open(process, &before) {
            return Self::connect(process, *listener, options, false);
        }
        refuse_without_signal(process, options)?;
        let (listener, is_ours) = open_by_signal(process, &before, options, is_cancelled)?;
        let inspector = Self::connect(process, listener, options, is_ours);
        if inspector.is_err() && is_ours {
            // The port must be closed, whatever was wrong with the target.
            let any = OpenOptions { target: None, ..options.clone() };
            let _ = Self::connect(process, listener, &any, is_ours).map(Self::close);
        }
        if is_cancelled.load(Ordering::Relaxed) {
            inspector?.close();
            return Err(Error::Cancelled);
        }
        inspector
    }

    fn connect(
        process: &Process,
        listener: Listener,
        options: &OpenOptions,
        must_close: bool,
    ) -> Result<Self> {
        let address = listener.address();
        let target = choose(process, targets(process, address)?, options.target.as_deref())?;
        // Only the path is used, because the host in this URL comes from the other side.
        let path =
            target.socket_url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
        let path = path
            .ok_or_else(|| Error::NotAnInspector { address, what: "a target without an address".into() })?;
        let mut connection = Connection::open(process, network::connect(process, address)?, address, path)?;
        let node_major = version(process, address).ok().and_then(|version| version.node_major());
        let process = process.clone();
        connection.watch_for_end()?;
        Ok(Self { process, listener, target, connection, wait: options.wait, must_close, node_major })
    }

    /// Inspected process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Address of the inspector.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Inspected target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Major version of Node; `None` for other programs.
    pub fn node_major(&self) -> Option<u32> {
        self.node_major
    }

    /// Whether heapr opened the port.
    pub fn was_opened_by_us(&self) -> bool {
        self.must_close
    }

    /// Attaches to the worker threads of a Node process and returns them.
    pub fn workers(&mut self, is_cancelled: &AtomicBool) -> Result<Vec<Worker>> {
        worker::attach(&mut self.connection, self.wait, is_cancelled)
    }

    /// Returns the heap size of the main thread or the page, or of a worker.
    pub fn heap_usage(&mut self, worker: Option<&Worker>, is_cancelled: &AtomicBool) -> Result<HeapUsage> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(rename = "usedSize")]
            used_bytes: f64,
            #[serde(rename = "totalSize")]
            total_bytes: f64,
        }
        let patience = Patience { silence_max: self.wait, deadline: None, is_cancelled };
        let nothing: OnEvent<'_> = &mut |_, _| Ok(());
        let answer =
            self.connection.call(&isolate(worker), "Runtime.getHeapUsage", &json!({}), patience, nothing)?;
        let Answer { used_bytes, total_bytes } = parse_value(&answer)?;
        Ok(HeapUsage { used_bytes: used_bytes as u64, total_bytes: total_bytes as u64 })
    }

    /// Returns V8's figures about the main thread's memory.
    pub fn memory(&mut self, is_cancelled: &AtomicBool) -> Result<V8Memory> {
        let HeapUsage { used_bytes, total_bytes } = self.heap_usage(None, is_cancelled)?;
        v8_memory::ask(&mut self.connection, self.wait, is_cancelled, (used_bytes, total_bytes))
    }

    /// Takes a snapshot of the main thread or the page, or of a worker, and writes it as it
    /// arrives.
    pub fn take_snapshot(
        &mut self,
        worker: Option<&Worker>,
        options: SnapshotOptions,
        sink: &mut (dyn Write + Send),
        on_progress: &mut dyn FnMut(SnapshotProgress),
        is_cancelled: &AtomicBool,
    ) -> Result<TakenSnapshot> {
        let delivery = Delivery { sink, on_progress, is_cancelled };
        snapshot::take(&mut self.connection, &isolate(worker), options, delivery)
    }

    /// Makes the program write a snapshot on each future signal, as if it had been started with
    /// `--heapsnapshot-signal`. Returns the directory of the snapshots, as the program sees it.
    pub fn prepare(&mut self, signal: SnapshotSignal, is_cancelled: &AtomicBool) -> Result<PathBuf> {
        signal_handler::install(&mut self.connection, &self.process, signal, self.wait, is_cancelled)
    }

    /// Samples the allocations of the main thread until the time is over or the flag is raised.
    /// Returns the profile (the contents of a `.heapprofile`).
    pub fn sample(
        &mut self,
        worker: Option<&Worker>,
        options: SamplingOptions,
        until: Instant,
        is_cancelled: &AtomicBool,
    ) -> Result<Vec<u8>> {
        profile::sample(&mut self.connection, &isolate(worker), options, until, self.wait, is_cancelled)
    }

    /// Records an allocation timeline until the time is over or the flag is raised, and writes it.
    /// The timeline (`.heaptimeline`) is a snapshot with the stacks of the recorded allocations.
    pub fn record_timeline(
        &mut self,
        worker: Option<&Worker>,
        options: SnapshotOptions,
        until: Instant,
        sink: &mut (dyn Write + Send),
        on_progress: &mut dyn FnMut(SnapshotProgress),
        is_cancelled: &AtomicBool,
    ) -> Result<TakenSnapshot> {
        let delivery = Delivery { sink, on_progress, is_cancelled };
        let (isolate, wait) = (isolate(worker), self.wait);
        profile::record_timeline(&mut self.connection, &isolate, options, until, wait, delivery)
    }

    /// Calls `wants` for each script of the main thread or the page, or of a worker. Scripts for
    /// which it returns true go to `take` with their texts.
    pub fn scripts(
        &mut self,
        worker: Option<&Worker>,
        is_cancelled: &AtomicBool,
        wants: &mut dyn FnMut(&Script) -> bool,
        take: &mut dyn FnMut(Script, String),
    ) -> Result<()> {
        scripts::each(&mut self.connection, &isolate(worker), self.wait, is_cancelled, wants, take)
    }

    /// Holds the session open for some time. Returns early with an error if the process is ending.
    /// Node waits at its exit until the last session is closed, so the inspector must then be
    /// dropped.
    pub fn rest(&mut self, until: Instant, is_cancelled: &AtomicBool) -> Result<()> {
        self.connection.listen(&Isolate::Main, until, is_cancelled, &mut |_, _| Ok(()))?;
        if self.connection.is_ending() { Err(Error::ProcessEnding { pid: self.process.pid }) } else { Ok(()) }
    }

    /// Whether the process still sends a cancelled snapshot. Closing the session waits until that
    /// is done.
    pub fn is_sending(&self) -> bool {
        self.connection.is_unfinished()
    }

    /// Ends the session, and closes the port if heapr opened it.
    pub fn close(mut self) -> Closing {
        self.close_port()
    }

    fn close_port(&mut self) -> Closing {
        self.connection.finish(snapshot::SILENCE_MAX);
        if !std::mem::take(&mut self.must_close) {
            return Closing::WasOpenBefore;
        }
        if self.connection.is_ending() {
            // Timers do not run any more; the port disappears with the process.
            return Closing::Closed;
        }
        // The request closes the port from a timer, because a direct call would wait for this very
        // request. The timer is unreferenced and does not delay the exit. It closes the port again
        // after the event loop has polled. A thread that was busy when SIGUSR1 came has opened the
        // port from an interrupt. It opens the port a second time from the pending event.
        let params = json!({ "expression": CLOSE, "silent": true, "returnByValue": true });
        let never = AtomicBool::new(false);
        let deadline = Some(Instant::now() + CLOSE_TIME);
        let patience = Patience { silence_max: CLOSE_TIME, deadline, is_cancelled: &never };
        let nothing: OnEvent<'_> = &mut |_, _| Ok(());
        let asked = self.connection.call(&Isolate::Main, "Runtime.evaluate", &params, patience, nothing);
        // The port is checked even after an answer: an endless loop processes requests, but no
        // timers.
        let has_heard = matches!(asked, Ok(_) | Err(Error::NoAnswer { .. }));
        let deadline = Instant::now() + if asked.is_ok() { LAST_WAIT } else { Duration::ZERO };
        loop {
            let listens = listeners_of(&self.process).is_ok_and(|listeners| {
                listeners.iter().any(|listener| listener.inode == self.listener.inode)
            });
            if !listens {
                return Closing::Closed;
            }
            if Instant::now() >= deadline {
                let address = self.listener.address();
                return if has_heard { Closing::Asked(address) } else { Closing::StillOpen(address) };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        self.close_port();
    }
}

fn isolate(worker: Option<&Worker>) -> Isolate {
    worker.map_or(Isolate::Main, |worker| Isolate::Worker(worker.session_id.clone()))
}
