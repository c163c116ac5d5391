//! The session's side of the socket: accepts, checks who it is, reads a line, hands it to the worker, writes the answer.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::protocol::{
    Answer, AnswerLine, Failure, FailureKind, Order, PROTOCOL_VERSION, REQUEST_BYTES_MAX, RequestLine,
};

/// Clients served at the same time; one more is closed at once.
const CLIENTS_MAX: usize = 16;
/// A request must be whole, and its answer taken, within this time each.
const PATIENCE: Duration = Duration::from_secs(10);

/// The listening thread; ends when dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Serves a socket until it is dropped.
    ///
    /// # Errors
    /// No thread or no descriptors.
    pub(crate) fn start(socket: UnixListener, orders: Sender<Order>) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("heapr-control".to_owned())
            .spawn(move || accept_all(&socket, &stopped, &orders))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept_all(socket: &UnixListener, stopped: &UnixStream, orders: &Sender<Order>) {
    let client_count = Arc::new(AtomicUsize::new(0));
    loop {
        let mut watched =
            [PollFd::new(socket, PollFlags::IN), PollFd::new(stopped, PollFlags::IN | PollFlags::HUP)];
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        if !watched[1].revents().is_empty() {
            return;
        }
        let client = match socket.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            // No descriptors left, most likely: some will be closed.
            Err(_) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if !is_allowed(&client) || client_count.load(Relaxed) >= CLIENTS_MAX {
            continue;
        }
        client_count.fetch_add(1, Relaxed);
        let (orders, count) = (orders.clone(), Arc::clone(&client_count));
        let serving = thread::Builder::new().name("heapr-client".to_owned()).spawn(move || {
            serve(&client, &orders);
            count.fetch_sub(1, Relaxed);
        });
        if serving.is_err() {
            client_count.fetch_sub(1, Relaxed);
        }
    }
}

/// Only this user and root may give orders. (The directory's mode says the same; a descriptor may have been passed on.)
fn is_allowed(client: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(client)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid() || peer.uid.is_root())
}

/// One request, one answer: then the connection is closed.
fn serve(client: &UnixStream, orders: &Sender<Order>) {
    let answer = match read_line(client, REQUEST_BYTES_MAX, PATIENCE) {
        Ok(line) => answer(&line, orders, client),
        Err(reason) => Some(refused(format!("the request {reason}"))),
    };
    let Some(answer) = answer else { return };
    let line = AnswerLine { heapr: PROTOCOL_VERSION, answer };
    if let Ok(mut text) = serde_json::to_vec(&line) {
        text.push(b'\n');
        let _ = client.set_write_timeout(Some(PATIENCE));
        let _ = (&mut &*client).write_all(&text);
    }
}

fn refused(message: String) -> Answer {
    Answer::Failed(Failure::new(FailureKind::Protocol, message))
}

/// The worker's answer; `None` if the client has gone and the session is about to end anyway.
fn answer(line: &[u8], orders: &Sender<Order>, client: &UnixStream) -> Option<Answer> {
    // The version first: what another version means by a request is not known.
    let version = serde_json::from_slice::<serde_json::Value>(line).ok()?.get("heapr")?.as_u64();
    if version != Some(u64::from(PROTOCOL_VERSION)) {
        return Some(refused(format!(
            "the session speaks protocol {PROTOCOL_VERSION}, the request is of another version: use the heapr that started it"
        )));
    }
    let request = match serde_json::from_slice::<RequestLine>(line) {
        Ok(line) => line.request,
        Err(error) => return Some(refused(format!("the request cannot be understood: {error}"))),
    };
    let (sender, receiver) = mpsc::channel();
    let order = Order { request, answer: sender };
    let gone = || Answer::Failed(Failure::new(FailureKind::NoSuchSession, "the session has ended"));
    if orders.send(order).is_err() {
        return Some(gone());
    }
    // A client that goes away while it waits is not waited for.
    loop {
        match receiver.recv_timeout(Duration::from_millis(200)) {
            Ok(answer) => return Some(answer),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Some(gone()),
            Err(mpsc::RecvTimeoutError::Timeout) if has_hung_up(client) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

fn has_hung_up(client: &UnixStream) -> bool {
    let mut watched = [PollFd::new(client, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok_and(|count| count > 0)
        && watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// A line of at most `limit` bytes, whole within `patience`, without its end.
pub(super) fn read_line(stream: &UnixStream, limit: usize, patience: Duration) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + patience;
    let mut line = Vec::new();
    let mut reader = stream;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("was not whole within {} s", patience.as_secs()));
        }
        let _ = stream.set_read_timeout(Some(left));
        let mut chunk = [0_u8; 4096];
        let count = match reader.read(&mut chunk) {
            Ok(0) => return Err("ended within its line".to_owned()),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                return Err(format!("was not whole within {} s", patience.as_secs()));
            }
            Err(error) => return Err(format!("could not be read: {error}")),
        };
        let (part, is_whole) = match chunk[..count].iter().position(|&byte| byte == b'\n') {
            Some(end) => (&chunk[..end], true),
            None => (&chunk[..count], false),
        };
        if line.len() + part.len() > limit {
            return Err(format!("is longer than {limit} bytes"));
        }
        line.extend_from_slice(part);
        if is_whole {
            return Ok(line);
        }
    }
}
