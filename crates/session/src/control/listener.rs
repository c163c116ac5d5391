//! Server side of a session's socket: accepts clients, checks their user, reads a line, passes it
//! to the worker, and writes the answer.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::protocol::{Answer, AnswerLine, Order, PROTOCOL_VERSION, REQUEST_BYTES_MAX, RequestLine};
use crate::bell::Letterbox;
use crate::failure::{Failure, FailureKind};

/// Largest number of concurrent clients; one more is closed at once.
const CLIENTS_MAX: usize = 16;
/// Longest time for a request to arrive, and for its answer to be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for answers to be read when the listener ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Handle of the listening thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Number of orders whose answers are not written yet.
    open_orders: Arc<AtomicUsize>,
    /// Socket that is closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Serves a socket until the handle is dropped.
    ///
    /// # Errors
    /// No thread or no descriptors.
    pub(crate) fn start(socket: UnixListener, orders: Letterbox<Order>) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let open_orders = Arc::new(AtomicUsize::new(0));
        let desk = Desk { orders, open_orders: Arc::clone(&open_orders) };
        let thread = thread::Builder::new()
            .name("heapr-control".to_owned())
            .spawn(move || accept_all(&socket, &stopped, &desk))?;
        Ok(Self { open_orders, stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the thread once open answers are written.
    pub(crate) fn finish(self) {
        let deadline = Instant::now() + FAREWELL;
        while self.open_orders.load(Acquire) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
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

/// Channel by which client threads pass on orders.
#[derive(Debug, Clone)]
struct Desk {
    orders: Letterbox<Order>,
    open_orders: Arc<AtomicUsize>,
}

fn accept_all(socket: &UnixListener, stopped: &UnixStream, desk: &Desk) {
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
            // Most likely no descriptor is free: some will be closed.
            Err(_) => {
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if !is_allowed(&client) || client_count.load(Relaxed) >= CLIENTS_MAX {
            continue;
        }
        client_count.fetch_add(1, Relaxed);
        let (desk, count) = (desk.clone(), Arc::clone(&client_count));
        let serving = thread::Builder::new().name("heapr-client".to_owned()).spawn(move || {
            serve(&client, &desk);
            count.fetch_sub(1, Relaxed);
        });
        if serving.is_err() {
            client_count.fetch_sub(1, Relaxed);
        }
    }
}

/// Whether a client is this user or root. The directory's mode ensures the same, but a descriptor
/// may have been passed on.
fn is_allowed(client: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(client)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid() || peer.uid.is_root())
}

/// Reads one request and writes one answer; then the connection is closed.
fn serve(client: &UnixStream, desk: &Desk) {
    let line = read_line(client, REQUEST_BYTES_MAX, PATIENCE);
    desk.open_orders.fetch_add(1, AcqRel);
    let answer = match line {
        Ok(line) => answer(&line, &desk.orders, client),
        Err(reason) => Some(refused(format!("the request {reason}"))),
    };
    if let Some(answer) = answer {
        write_answer(client, answer);
    }
    // Release: pairs with the Acquire in `finish`.
    desk.open_orders.fetch_sub(1, AcqRel);
}

fn write_answer(client: &UnixStream, answer: Answer) {
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

/// Gets the worker's answer; `None` if the client has gone and the answer is not needed.
fn answer(line: &[u8], orders: &Letterbox<Order>, client: &UnixStream) -> Option<Answer> {
    // The version is checked first: another version may mean something else by a request.
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
    // The wait ends if the client hangs up.
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

/// Reads a line of at most `limit` bytes within `patience`, without its newline.
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
