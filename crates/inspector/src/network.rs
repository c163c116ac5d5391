//! Connections to a port of a process, also from outside of its container.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::{Error, Result};
use super::process::Process;

/// Largest time to connect; on the same machine a connection succeeds or fails immediately.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Connects from within the process's network namespace.
pub(crate) fn connect(process: &Process, address: SocketAddr) -> Result<TcpStream> {
    let stream = if process.is_in_other_network {
        connect_inside(process, address)?
    } else {
        TcpStream::connect_timeout(&address, CONNECT_TIME).map_err(|source| broke(address, source))?
    };
    stream.set_nodelay(true).map_err(|source| broke(address, source))?;
    Ok(stream)
}

/// Checks that [`connect`] can reach the process. The check runs before a signal opens a port that
/// heapr could not close again.
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

/// Runs `work` in the network namespace of a process. Only a new thread enters the namespace; a
/// socket stays in the namespace in which it was created.
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
