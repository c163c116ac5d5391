//! Writer with a thread of its own, so that a slow disk does not delay the socket.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Number of bytes handed over to the writing thread at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Largest number of blocks that wait for the disk. Further data waits in the target's memory,
/// which is worse.
const BLOCKS_MAX: usize = 256;

/// Producer's end of the writer.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    block: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    bytes: u64,
    /// Last bytes, across blocks.
    tail: Vec<u8>,
}

/// Error of the writing thread; [`write_behind`] returns its cause.
#[derive(Debug)]
pub(crate) struct Stopped;

/// Runs `produce` on this thread, and writes its output on another one.
///
/// An error of the writer takes precedence over the result of `produce`.
pub(crate) fn write_behind<T>(
    sink: &mut (dyn Write + Send),
    produce: impl FnOnce(&mut WriteBehind) -> T,
) -> io::Result<T> {
    let (full, to_write) = sync_channel::<Vec<u8>>(BLOCKS_MAX);
    let (written, empty) = sync_channel::<Vec<u8>>(BLOCKS_MAX);
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("heapr-writer".into()).spawn_scoped(scope, move || {
                for mut block in to_write {
                    sink.write_all(&block)?;
                    block.clear();
                    // A full return channel means that enough blocks are in circulation.
                    let _ = written.try_send(block);
                }
                sink.flush()
            })?;
        let mut behind = WriteBehind { block: Vec::new(), full, empty, bytes: 0, tail: Vec::new() };
        let produced = produce(&mut behind);
        let _ = behind.hand_over();
        drop(behind);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread ended")))?;
        Ok(produced)
    })
}

impl WriteBehind {
    /// Buffer to append to; [`Self::appended`] counts the appended bytes.
    pub(crate) fn block(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Counts the bytes appended since the block was `before_bytes` long, and hands it over when it
    /// is full.
    pub(crate) fn appended(&mut self, before_bytes: usize) -> Result<(), Stopped> {
        self.bytes += (self.block.len() - before_bytes) as u64;
        if self.block.len() >= BLOCK_BYTES { self.hand_over() } else { Ok(()) }
    }

    /// Number of bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the last bytes, at most 64.
    pub(crate) fn tail(&self) -> Vec<u8> {
        let mut tail = self.tail.clone();
        tail.extend_from_slice(&self.block[self.block.len().saturating_sub(TAIL_BYTES)..]);
        tail.split_off(tail.len().saturating_sub(TAIL_BYTES))
    }

    fn hand_over(&mut self) -> Result<(), Stopped> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.tail = self.tail();
        let next =
            self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 4));
        self.full.send(std::mem::replace(&mut self.block, next)).map_err(|_| Stopped)
    }
}

const TAIL_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order() {
        let mut out = Vec::new();
        let (bytes, tail) = write_behind(&mut out, |behind| {
            for number in 0..400_000_u32 {
                let before = behind.block().len();
                behind.block().extend_from_slice(format!("{number}\n").as_bytes());
                behind.appended(before).unwrap();
            }
            (behind.bytes(), behind.tail())
        })
        .unwrap();
        let expected: String = (0..400_000).map(|number| format!("{number}\n")).collect();
        assert!(out == expected.as_bytes());
        assert_eq!(bytes, out.len() as u64);
        assert_eq!(tail, &out[out.len() - 64..]);
    }

    #[test]
    fn a_full_disk_stops_the_producer() {
        let mut full = [0_u8; 10];
        let mut sink = &mut full[..];
        let result = write_behind(&mut sink, |behind| {
            let mut rounds = 0;
            loop {
                let before = behind.block().len();
                behind.block().resize(before + BLOCK_BYTES, 7);
                rounds += 1;
                if behind.appended(before).is_err() {
                    return rounds;
                }
                assert!(rounds < 2 * BLOCKS_MAX + 10, "the producer is never told");
            }
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
