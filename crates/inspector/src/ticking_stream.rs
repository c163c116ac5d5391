//! TCP stream whose reads return within a moment. An inspector that sends one byte at a time must
//! not delay a reader beyond its deadline.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Interval between two checks of the flag, the deadline and the process.
const TICK: Duration = Duration::from_millis(100);

/// Stream that reads until the end of a tick, and then reports that it would block, even if data is
/// available.
#[derive(Debug)]
pub(crate) struct TickingStream {
    stream: TcpStream,
    until: Instant,
}

impl TickingStream {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(TICK))?;
        Ok(Self { stream, until: Instant::now() + TICK })
    }

    /// Begins the next tick.
    pub(crate) fn begin_tick(&mut self) {
        self.until = Instant::now() + TICK;
    }
}

impl Read for TickingStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.until {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.stream.read(into)
    }
}

impl Write for TickingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
