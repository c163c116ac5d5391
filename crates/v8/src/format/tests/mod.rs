//! Tests of the reader against a naive model, and with damaged or malformed files.

mod archives;
mod counts;
mod made_text;
mod model;

use std::io::Read;

use crate::{ReadOptions, Result, Snapshot};

/// Reader that returns a few bytes at a time, like a pipe.
struct Trickle {
    text: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.step.min(into.len()).min(self.text.len() - self.at);
        into[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn read(text: &[u8]) -> Result<Snapshot> {
    read_as(text, 2, usize::MAX)
}

fn read_as(text: &[u8], thread_count: usize, step: usize) -> Result<Snapshot> {
    let options = ReadOptions { thread_count, ..ReadOptions::default() };
    Snapshot::read(Trickle { text: text.to_vec(), at: 0, step }, &options)
}

fn read_file(text: &[u8]) -> Result<Snapshot> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text).unwrap();
    Snapshot::open(file.path(), &ReadOptions::default())
}
