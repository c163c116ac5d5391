//! Connecting to a port of a process, also from outside of its container.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::{Error, Result};
use super::process::Process;

/// A connection on the same machine is there at once or not at all.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Connects from within the network that the process sees.
pub(crate) fn connect(process: &Process, address: SocketAddr) -> Result<TcpStream> {
    let stream = if process.is_in_other_network {
        connect_inside(process, address)?
    } else {
        TcpStream::connect_timeout(&address, CONNECT_TIME).map_err(|source| broke(address, source))?
    };
    stream.set_nodelay(true).map_err(|source| broke(address, source))?;
    Ok(stream)
}

/// Whether [`connect`] can reach the process at all: checked before a signal opens a port that we
/// could not close again.
pub(crate) fn can_reach(process: &Process) -> Result<()> {
    if !process.is_in_other_network {
        return Ok(());
    }
    inside(process, || ()).map_err(|_| refusal(process))
}

fn connect_inside(process: &Process, address: SocketAddr) -> Result<TcpStream> {
    match inside(process, move || TcpStream::connect_timeout(&address, CONNECT_TIME)) {
        Ok(connected) => connected.map_err(|source| broke(address, source)),
        Err(_) => Err(refusal(process)),
    }
}

/// Runs a piece of work in the network namespace of a process. Only the thread that is made for it
/// moves there; a socket stays in the namespace that it was made in.
fn inside<T: Send + 'static>(process: &Process, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let namespace = File::open(format!("/proc/{}/ns/net", process.pid))?;
    let thread = std::thread::Builder::new().name("heapr-netns".into()).spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread ended")))
}

fn refusal(process: &Process) -> Error {
    Error::OtherNetwork { pid: process.pid, inner_pid: process.inner_pid }
}

fn broke(address: SocketAddr, source: io::Error) -> Error {
    Error::Connection { address, source: Box::new(source.into()) }
}
