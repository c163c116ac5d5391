//! Port of an inspector: found by the options of the process, or opened by SIGUSR1.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::error::{Error, Result};
use super::http;
use super::listening_ports::{Listener, listeners_in_network_of, listeners_of, owner_of};
use super::network;
use super::process::Process;
use heapr_known::runtimes::Runtime;

/// Default port of Node.
const DEFAULT_PORT: u16 = 9229;
/// Interval between two checks of the port.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time after Ctrl-C during which the port opened by the signal is awaited, in order to close it.
pub(crate) const LAST_WAIT: Duration = Duration::from_secs(2);
/// Options that open a port at the start.
const OPENING: [&str; 4] = ["--inspect", "--inspect-brk", "--inspect-wait", "--remote-debugging-port"];
/// Options that only choose the port that a signal opens.
const CHOOSING: [&str; 2] = ["--inspect-port", "--debug-port"];

/// Options for opening an inspector.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Whether SIGUSR1 may be sent to a Node process without an open port.
    pub may_signal: bool,
    /// Time for the process to open its port, and to answer short requests.
    pub wait: Duration,
    /// Id of the target, or a part of its URL or title; required for several pages.
    pub target: Option<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { may_signal: true, wait: Duration::from_secs(30), target: None }
    }
}

/// Returns the ports that an inspector of this process would use, by its options.
fn expected_ports(process: &Process) -> Vec<u16> {
    let mut ports = ports_of(process, &CHOOSING);
    ports.extend(ports_of(process, &OPENING));
    ports.push(DEFAULT_PORT);
    ports
}

/// Parses `PORT` or `HOST:PORT`. An option without a value is followed by the script.
fn ports_of(process: &Process, options: &[&str]) -> Vec<u16> {
    let values = options.iter().filter_map(|option| process.option(option));
    values.filter_map(|value| value.rsplit(':').next()?.parse().ok()).collect()
}

impl Process {
    /// Whether the process can give snapshots of JavaScript: always for known runtimes; for other
    /// programs with V8 only if their inspector is open.
    pub fn runs_javascript(&self) -> bool {
        match self.runtime {
            Runtime::Jvm | Runtime::Python | Runtime::Ruby | Runtime::Go | Runtime::Other => false,
            Runtime::Embedder => {
                self.standstill().is_none()
                    && listeners_of(self).is_ok_and(|listeners| find_open(self, &listeners).is_some())
            }
            Runtime::Node | Runtime::Deno | Runtime::Electron | Runtime::Chrome | Runtime::Bun => true,
        }
    }
}

/// Returns the inspector that is already open.
pub(crate) fn find_open<'a>(process: &Process, listeners: &'a [Listener]) -> Option<&'a Listener> {
    let expected = expected_ports(process);
    let is_expected = |listener: &&Listener| expected.contains(&listener.bound_to.port());
    let open = listeners.iter().filter(is_expected).find(|listener| is_inspector(process, listener));
    open.or_else(|| open_anywhere(process, listeners))
}

/// Searches all ports of the process if neither a default nor an option names the inspector's port.
/// The servers of programs with a known port are not contacted.
fn open_anywhere<'a>(process: &Process, listeners: &'a [Listener]) -> Option<&'a Listener> {
    let is_known = matches!(process.runtime, Runtime::Node | Runtime::Deno | Runtime::Bun);
    if is_known && !ports_of(process, &OPENING).contains(&0) {
        return None;
    }
    let is_named = |listener: &&&Listener| process.names_port(listener.bound_to.port());
    let (named, others): (Vec<&Listener>, Vec<&Listener>) =
        listeners.iter().partition(|listener| is_named(&listener));
    let is_on_loopback = |listener: &&Listener| listener.address().ip().is_loopback();
    named
        .into_iter()
        .chain(others.into_iter().filter(is_on_loopback))
        .find(|listener| is_inspector(process, listener))
}

/// Answer to `/json/version`. A program may answer any path with anything, but a protocol version
/// does not occur by chance.
#[derive(Deserialize)]
pub(crate) struct Version {
    #[serde(rename = "Browser", default)]
    program: String,
    #[serde(rename = "Protocol-Version")]
    _protocol: String,
}

impl Version {
    /// Returns the major version of Node, such as 20 for `node.js/v20.20.2`.
    pub(crate) fn node_major(&self) -> Option<u32> {
        self.program.strip_prefix("node.js/v")?.split('.').next()?.parse().ok()
    }
}

pub(crate) fn version(process: &Process, address: SocketAddr) -> Result<Version> {
    let body = http::get(network::connect(process, address)?, address, "/json/version")?;
    serde_json::from_slice(&body).map_err(|error| Error::NotAnInspector { address, what: error.to_string() })
}

fn is_inspector(process: &Process, listener: &Listener) -> bool {
    version(process, listener.address()).is_ok()
}

/// Checks that the signal may be sent. A port that fails to open only leaves a message in the
/// program's log, so the check comes first.
pub(crate) fn refuse_without_signal(process: &Process, options: &OpenOptions) -> Result<()> {
    let pid = process.pid;
    match process.runtime {
        Runtime::Deno => return Err(Error::NeedsPort { pid, runtime: "Deno", option: "--inspect" }),
        Runtime::Chrome => {
            return Err(Error::NeedsPort { pid, runtime: "Chrome", option: "--remote-debugging-port=9222" });
        }
        Runtime::Bun => return Err(Error::Bun { pid }),
        Runtime::Embedder | Runtime::Jvm | Runtime::Python | Runtime::Ruby | Runtime::Go | Runtime::Other => {
            return Err(Error::NotV8 { pid, program: process.program.clone() });
        }
        Runtime::Node | Runtime::Electron => {}
    }
    for option in ["--heapsnapshot-signal", "--report-signal"] {
        if process.option(option).as_deref() == Some("SIGUSR1") {
            return Err(Error::SignalMeansElse { pid, option });
        }
    }
    if !options.may_signal {
        return Err(Error::SignalForbidden { pid });
    }
    let port = *expected_ports(process).first().unwrap_or(&DEFAULT_PORT);
    let taken = listeners_in_network_of(pid).into_iter().find(|listener| {
        let ip = listener.bound_to.ip();
        listener.bound_to.port() == port && (ip.is_loopback() && ip.is_ipv4() || ip.is_unspecified())
    });
    match taken {
        Some(other) => {
            let owner = owner_of(other.inode).unwrap_or_else(|| "another process".into());
            Err(Error::PortTaken { pid, port, owner })
        }
        None => Ok(()),
    }
}

/// Sends the signal and waits for the port. Also returns whether heapr must close it.
pub(crate) fn open_by_signal(
    process: &Process,
    before: &[Listener],
    options: &OpenOptions,
    is_cancelled: &AtomicBool,
) -> Result<(Listener, bool)> {
    let advice = match process.has_permissions() {
        true => {
            "Node's --permission shuts its inspector; start it with --allow-inspector, too (Node 24 and later), or with \
             --heapsnapshot-signal=SIGUSR2 and --allow-fs-write of the directory that it runs in"
        }
        false => {
            "it was started with --disable-sigusr1, or is still starting, or is no Node; start it with --inspect or under \
             `heapr node`"
        }
    };
    if is_cancelled.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    process.send(rustix::process::Signal::USR1, "SIGUSR1", advice)?;
    let known: HashSet<u64> = before.iter().map(|listener| listener.inode).collect();
    let mut deadline = Instant::now() + options.wait;
    let mut refused = HashSet::new();
    while Instant::now() < deadline {
        if is_cancelled.load(Ordering::Relaxed) {
            deadline = deadline.min(Instant::now() + LAST_WAIT);
        }
        for listener in listeners_of(process)? {
            if known.contains(&listener.inode) || refused.contains(&listener.inode) {
                continue;
            }
            if is_inspector(process, &listener) {
                return Ok((listener, true));
            }
            // The program may open a port of its own at this time; it is contacted once.
            refused.insert(listener.inode);
        }
        if !process.is_alive() {
            return Err(Error::ProcessEnded { pid: process.pid });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // The program opened the port by `inspector.open(port)`: SIGUSR1 then has no effect.
    if let Some(listener) = before
        .iter()
        .filter(|listener| listener.bound_to.ip().is_loopback())
        .find(|listener| is_inspector(process, listener))
    {
        return Ok((*listener, false));
    }
    Err(Error::PortDidNotOpen { pid: process.pid, waited_s: options.wait.as_secs() })
}
