//! TCP ports that a process listens on, from `/proc` alone.
//!
//! ```text
//! /proc/PID/net/tcp    sl  local_address rem_address   st … uid timeout inode
//!                       0: 0100007F:240D 00000000:0000 0A …   0       0 31337      st 0A: listening
//! /proc/PID/fd/23   -> socket:[31337]
//! ```
//! An address is written as 32-bit words in the machine's byte order.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::error::{Error, Result};
use super::process::Process;

impl Process {
    /// Returns the TCP sockets that the process listens on.
    pub fn listeners(&self) -> Result<Vec<Listener>> {
        listeners_of(self)
    }
}

/// Socket that a process listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listener {
    /// Address that the socket is bound to.
    pub bound_to: SocketAddr,
    /// Inode number of the socket.
    pub inode: u64,
}

impl Listener {
    /// Address for a client on this machine: loopback, unless the socket is bound to one other
    /// address.
    pub fn address(&self) -> SocketAddr {
        let ip = match self.bound_to.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        SocketAddr::new(ip, self.bound_to.port())
    }
}

/// Returns the listening sockets that the process itself holds, in the order of their ports.
pub(crate) fn listeners_of(process: &Process) -> Result<Vec<Listener>> {
    let inodes = socket_inodes(process)?;
    let mut listeners = listeners_in_network_of(process.pid);
    listeners.retain(|listener| inodes.contains(&listener.inode));
    Ok(listeners)
}

/// Returns all listening sockets in the network namespace of a process.
pub(crate) fn listeners_in_network_of(pid: u32) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for table in ["tcp", "tcp6"] {
        // IPv6 may be disabled.
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        listeners.extend(text.lines().skip(1).filter_map(parse_line));
    }
    listeners.sort_by_key(|listener| (listener.bound_to.port(), listener.inode));
    listeners
}

/// Describes the holder of a socket as `process 17 (node)`, if it can be found.
pub(crate) fn owner_of(inode: u64) -> Option<String> {
    let pid = heapr_proc::pids().find(|&pid| inodes_of(pid).is_ok_and(|inodes| inodes.contains(&inode)))?;
    Some(format!("process {pid} ({})", heapr_proc::thread_name(pid, pid).unwrap_or_default()))
}

fn socket_inodes(process: &Process) -> Result<HashSet<u64>> {
    inodes_of(process.pid).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => super::process::denied(process.pid, process.uid),
        io::ErrorKind::NotFound => Error::ProcessEnded { pid: process.pid },
        _ => Error::Proc { path: format!("/proc/{}/fd", process.pid), source },
    })
}

fn inodes_of(pid: u32) -> io::Result<HashSet<u64>> {
    let mut inodes = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Descriptors that are closed in the meantime can be ignored.
        let Ok(link) = entry.and_then(|entry| fs::read_link(entry.path())) else { continue };
        let inode =
            link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inodes.extend::<Option<u64>>(inode);
    }
    Ok(inodes)
}

fn parse_line(line: &str) -> Option<Listener> {
    const LISTENING: &str = "0A";
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    if fields.nth(1)? != LISTENING {
        return None;
    }
    let inode = fields.nth(5)?.parse().ok()?;
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0_u8; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            let ip = Ipv6Addr::from(bytes);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    Some(Listener { bound_to: SocketAddr::new(ip, port), inode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_becomes_an_address() {
        let line = "   0: 0100007F:240D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000 100 0 0 10 0";
        let listener = parse_line(line).unwrap();
        assert_eq!(listener.bound_to, "127.0.0.1:9229".parse().unwrap());
        assert_eq!(listener.inode, 31337);
    }

    #[test]
    fn version_six_is_read_word_by_word() {
        let line = "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0";
        assert_eq!(parse_line(line).unwrap().bound_to, "[::1]:8080".parse().unwrap());
        let mapped = line.replace("00000000000000000000000001000000", "0000000000000000FFFF00000100007F");
        assert_eq!(parse_line(&mapped).unwrap().bound_to, "127.0.0.1:8080".parse().unwrap());
    }

    #[test]
    fn connections_and_damaged_lines_are_no_listeners() {
        for line in [
            "",
            "0: 0100007F:240D",
            "0: 0100007F:240D 00000000:0000 01 0:0 0:0 0 0 0 31337",
            "0: 0100:240D 00000000:0000 0A 0:0 0:0 0 0 0 31337",
            "0: ääää:240D 00000000:0000 0A 0:0 0:0 0 0 0 31337",
        ] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn everywhere_is_reached_over_loopback() {
        let at = |text: &str| Listener { bound_to: text.parse().unwrap(), inode: 1 }.address().to_string();
        assert_eq!(at("0.0.0.0:9229"), "127.0.0.1:9229");
        assert_eq!(at("[::]:9229"), "[::1]:9229");
        assert_eq!(at("10.1.2.3:9229"), "10.1.2.3:9229");
    }

    #[test]
    fn our_own_listener_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let process = Process::examine(std::process::id()).unwrap();
        let addresses: Vec<_> = listeners_of(&process).unwrap().iter().map(Listener::address).collect();
        assert!(addresses.contains(&socket.local_addr().unwrap()));
    }
}
