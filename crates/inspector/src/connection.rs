//! WebSocket connection to an inspector: requests, answers and events, including those of worker
//! threads.
//!
//! A worker's messages are nested in messages of the main thread:
//!
//! ```text
//! -> {"id":5,"method":"NodeWorker.sendMessageToWorker","params":{"sessionId":"1","message":"{\"id\":6,…}"}}
//! <- {"method":"NodeWorker.receivedMessageFromWorker","params":{"sessionId":"1","message":"{\"id\":6,…}"}}
//! ```

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error as SocketError, HandshakeError, Message as Frame, Utf8Bytes, WebSocket};

use super::error::{Error, Result};
use super::memory::most_resident_bytes;
use super::message::Message;
use super::process::Process;
use super::ticking_stream::TickingStream;

/// Largest size of a message in bytes. Snapshot chunks have 100 KB; the longest messages are whole
/// sampling profiles.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Number of bytes read at once.
const READ_BUFFER_BYTES: usize = 1 << 20;
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// Recipient of a request over one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Isolate {
    /// Main thread, or page.
    Main,
    /// Worker thread, by the id of its session.
    Worker(String),
}

/// Receiver of events. The text is valid only during the call.
pub(crate) type OnEvent<'a> = &'a mut dyn FnMut(&str, &RawValue) -> Result<()>;

/// Time limits of a request, and a flag that ends it early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// Longest time without any message.
    pub(crate) silence_max: Duration,
    /// Time at which the request fails even if messages arrive.
    pub(crate) deadline: Option<Instant>,
    pub(crate) is_cancelled: &'a AtomicBool,
}

/// Open connection.
pub(crate) struct Connection {
    socket: WebSocket<TickingStream>,
    address: SocketAddr,
    process: Process,
    last_id: u64,
    is_ending: bool,
    /// Cancelled request whose answer still arrives in many messages.
    unfinished: Option<(Isolate, u64)>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connection {
    /// Performs the WebSocket handshake over a fresh TCP connection. Of the inspector's own URL
    /// only the path is used, because the address is known.
    pub(crate) fn open(
        process: &Process,
        stream: TcpStream,
        address: SocketAddr,
        path: &str,
    ) -> Result<Self> {
        let broke = |source: SocketError| Error::Connection { address, source: Box::new(source) };
        stream.set_write_timeout(Some(HANDSHAKE_TIME)).map_err(|error| broke(error.into()))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let url = format!("ws://{address}{path}");
        let stream = TickingStream::new(stream).map_err(|error| broke(error.into()))?;
        let started = Instant::now();
        let mut shaken = tungstenite::client::client_with_config(url, stream, Some(config));
        let socket = loop {
            match shaken {
                Ok((socket, _)) => break socket,
                Err(HandshakeError::Interrupted(mut waiting)) if started.elapsed() < HANDSHAKE_TIME => {
                    waiting.get_mut().get_mut().begin_tick();
                    shaken = waiting.handshake();
                }
                Err(HandshakeError::Failure(source)) => return Err(broke(source)),
                Err(HandshakeError::Interrupted(_)) => {
                    return Err(broke(io::Error::from(io::ErrorKind::TimedOut).into()));
                }
            }
        };
        Ok(Self { socket, address, process: process.clone(), last_id: 0, is_ending: false, unfinished: None })
    }

    /// Asks Node to announce that it wants to exit; Node then waits until all sessions are closed.
    /// Browsers refuse the request and do not wait. The answer is not awaited.
    pub(crate) fn watch_for_end(&mut self) -> Result<()> {
        self.send(&Isolate::Main, "NodeRuntime.notifyWhenWaitingForDisconnect", &json!({ "enabled": true }))
            .map(drop)
    }

    /// Whether the process has announced that it waits for the end of this session in order to
    /// exit.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Sends a request and returns its number.
    pub(crate) fn send(&mut self, isolate: &Isolate, method: &str, params: &Value) -> Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "id": id, "method": method, "params": params });
        let outer = match isolate {
            Isolate::Main => request,
            Isolate::Worker(session) => {
                self.last_id += 1;
                let params = json!({ "sessionId": session, "message": request.to_string() });
                json!({ "id": self.last_id, "method": "NodeWorker.sendMessageToWorker", "params": params })
            }
        };
        self.socket.send(Frame::text(outer.to_string())).map_err(|source| self.broke(source))?;
        Ok(id)
    }

    /// Sends a request and waits for its answer. Events received meanwhile go to `on_event`.
    pub(crate) fn call(
        &mut self,
        isolate: &Isolate,
        method: &str,
        params: &Value,
        patience: Patience<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<Box<RawValue>> {
        let id = self.send(isolate, method, params)?;
        self.answer(isolate, id, method, patience, on_event)
    }

    /// Sends a request whose answer arrives in many messages, and waits as [`Connection::call`]
    /// does. If it is cancelled, [`Connection::finish`] must run before the connection is closed.
    pub(crate) fn call_for_stream(
        &mut self,
        isolate: &Isolate,
        method: &str,
        params: &Value,
        patience: Patience<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<Box<RawValue>> {
        let id = self.send(isolate, method, params)?;
        let outcome = self.answer(isolate, id, method, patience, on_event);
        if let Err(Error::Cancelled) = outcome {
            self.unfinished = Some((isolate.clone(), id));
        }
        outcome
    }

    /// Whether messages of a cancelled request still arrive.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Receives and discards the remaining messages of a cancelled request.
    ///
    /// Node's inspector crashes if a connection is closed while it has messages to send. Its thread
    /// notes the end, drops the socket, and writes to it a moment later. Seen in 20.20.2: a null
    /// pointer in `TcpHolder::WriteRaw`, in three of some two hundred cancelled snapshots on a busy
    /// machine.
    ///
    /// The wait ends after `silence_max` without a message, or after more bytes than a snapshot of
    /// the process can have. Such a peer is not Node.
    pub(crate) fn finish(&mut self, silence_max: Duration) {
        /// Largest ratio of snapshot to memory. A snapshot is one to three times as large as the
        /// heap, which is in memory when the snapshot is taken.
        const SNAPSHOT_PER_MEMORY_MAX: u64 = 8;
        const MORE_BYTES_MAX: u64 = 64 << 20;
        /// Number of bytes that a message counts at least: short messages take time too.
        const MESSAGE_BYTES: u64 = 1 << 10;
        let Some((isolate, id)) = self.unfinished.take() else { return };
        let memory_bytes = most_resident_bytes(self.process.pid);
        let mut left_bytes =
            memory_bytes.saturating_mul(SNAPSHOT_PER_MEMORY_MAX).saturating_add(MORE_BYTES_MAX);
        let never = AtomicBool::new(false);
        let patience = Patience { silence_max, deadline: None, is_cancelled: &never };
        let mut is_over = false;
        while !is_over && left_bytes > 0 {
            let received = self.receive("", patience, &mut |from, message| {
                let is_answer = from == isolate && message.id == Some(id);
                // A worker that is gone sends no further messages.
                let is_gone = matches!(&isolate, Isolate::Worker(session)
                    if message.method.as_deref() == Some("NodeWorker.detachedFromWorker")
                        && message.params.is_some_and(|params| params.get().contains(session.as_str())));
                is_over |= is_answer || is_gone;
                let text_bytes = message.params.map_or(0, |params| params.get().len() as u64);
                left_bytes = left_bytes.saturating_sub(text_bytes.max(MESSAGE_BYTES));
                Ok(())
            });
            // Waiting ends after silence, a broken connection or an unreadable message.
            is_over |= received.is_err();
        }
    }

    fn answer(
        &mut self,
        isolate: &Isolate,
        id: u64,
        method: &str,
        patience: Patience<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<Box<RawValue>> {
        let mut answer = None;
        while answer.is_none() {
            self.receive(method, patience, &mut |from, message| {
                if from != *isolate {
                    return Ok(());
                }
                if let (Some(event), Some(params)) = (&message.method, message.params) {
                    return on_event(event, params);
                }
                if message.id == Some(id) {
                    answer = Some(match (&message.error, message.result) {
                        (Some(refusal), _) => {
                            return Err(Error::Refused {
                                method: method.to_owned(),
                                message: refusal.message.clone(),
                            });
                        }
                        (None, result) => {
                            result.map_or_else(|| to_raw_value(&()), |result| Ok(result.to_owned()))
                        }
                    });
                }
                Ok(())
            })?;
        }
        match answer {
            Some(Ok(answer)) => Ok(answer),
            _ => {
                Err(Error::BadMessage { what: "an answer without a result".into(), start: method.to_owned() })
            }
        }
    }

    /// Hands events on until the time is over, the flag is raised, or the process wants to exit.
    pub(crate) fn listen(
        &mut self,
        isolate: &Isolate,
        until: Instant,
        is_cancelled: &AtomicBool,
        on_event: OnEvent<'_>,
    ) -> Result<()> {
        let patience = Patience { silence_max: Duration::MAX, deadline: Some(until), is_cancelled };
        while Instant::now() < until && !is_cancelled.load(Ordering::Relaxed) && !self.is_ending {
            let received =
                self.receive("", patience, &mut |from, message| match (&message.method, message.params) {
                    (Some(event), Some(params)) if from == *isolate => on_event(event, params),
                    _ => Ok(()),
                });
            match received {
                Err(Error::NoAnswer { .. } | Error::Cancelled) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Waits for the next message of any isolate.
    fn receive(
        &mut self,
        method: &str,
        patience: Patience<'_>,
        on_message: &mut dyn FnMut(Isolate, &Message<'_>) -> Result<()>,
    ) -> Result<()> {
        let text = self.next_text(method, patience)?;
        let message = Message::parse(&text)?;
        self.is_ending |= message.method.as_deref() == Some("NodeRuntime.waitingForDisconnect");
        let worker_params = match (&message.method, message.params) {
            (Some(event), Some(params)) if event == "NodeWorker.receivedMessageFromWorker" => Some(params),
            _ => None,
        };
        let Some(params) = worker_params else { return on_message(Isolate::Main, &message) };
        let params: WorkerParams<'_> = super::message::parse_value(params)?;
        on_message(Isolate::Worker(params.session_id.into_owned()), &Message::parse(&params.message)?)
    }

    fn next_text(&mut self, method: &str, patience: Patience<'_>) -> Result<Utf8Bytes> {
        let started = Instant::now();
        loop {
            if patience.is_cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if started.elapsed() >= patience.silence_max
                || patience.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            {
                let waited_s = started.elapsed().as_secs();
                return Err(Error::NoAnswer { method: method.to_owned(), waited_s });
            }
            self.socket.get_mut().begin_tick();
            match self.socket.read() {
                Ok(Frame::Text(text)) => return Ok(text),
                // The library answers pings.
                Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Binary(_) | Frame::Frame(_)) => {}
                Ok(Frame::Close(_)) => return Err(self.ended(Error::Closed { address: self.address })),
                Err(SocketError::Io(error))
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) =>
                {
                    if !self.process.is_alive() {
                        return Err(Error::ProcessEnded { pid: self.process.pid });
                    }
                }
                Err(source) => return Err(self.broke(source)),
            }
        }
    }

    fn broke(&self, source: SocketError) -> Error {
        self.ended(match source {
            SocketError::ConnectionClosed | SocketError::AlreadyClosed => {
                Error::Closed { address: self.address }
            }
            source => Error::Connection { address: self.address, source: Box::new(source) },
        })
    }

    /// Returns the error of an ended connection: the end of the process if that is the cause, else
    /// `otherwise`.
    fn ended(&self, otherwise: Error) -> Error {
        // Sockets are closed before a process is gone, and freeing a large heap takes some time.
        const DYING: Duration = Duration::from_millis(500);
        let started = Instant::now();
        while self.process.is_alive() {
            if started.elapsed() >= DYING {
                return otherwise;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Error::ProcessEnded { pid: self.process.pid }
    }
}

#[derive(Deserialize)]
struct WorkerParams<'a> {
    #[serde(rename = "sessionId", borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
}
