//! Bodies that an engine did not accept: a bounded folder, from which the oldest go first.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heapr_files::{NewFile, OwnFolder};

/// Bounded folder of bodies that wait for their engine.
#[derive(Debug)]
pub(super) struct Spool {
    folder: OwnFolder,
    bytes_max: u64,
    /// Number of bodies removed because the folder was full.
    pub(super) dropped_count: u64,
    next: u64,
}

impl Spool {
    /// Opens the folder, or creates it for this user alone.
    pub(super) fn open(folder: &Path, bytes_max: u64) -> anyhow::Result<Self> {
        let folder =
            OwnFolder::made(folder).with_context(|| format!("cannot make the spool {}", folder.display()))?;
        let mut spool = Self { folder, bytes_max, dropped_count: 0, next: 0 };
        // New bodies come after those that an earlier push has left.
        spool.next = spool.waiting().last().map_or(0, |(number, ..)| number + 1);
        Ok(spool)
    }

    /// Returns the bodies as number, engine, path, size; the oldest first.
    pub(super) fn waiting(&self) -> Vec<(u64, String, PathBuf, u64)> {
        let entries = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let (number, engine) = name.strip_suffix(".body")?.split_once('-')?;
                let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some((number.parse().ok()?, engine.to_owned(), entry.path(), metadata.len()))
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Saves a body for later, and removes the oldest if the folder is full.
    pub(super) fn keep(&mut self, engine: &str, body: &[u8]) -> anyhow::Result<()> {
        let mut waiting = self.waiting();
        let mut bytes: u64 = waiting.iter().map(|(.., bytes)| bytes).sum();
        while bytes + body.len() as u64 > self.bytes_max && !waiting.is_empty() {
            let (.., path, size) = waiting.remove(0);
            let _ = std::fs::remove_file(path);
            bytes -= size;
            self.dropped_count += 1;
        }
        if body.len() as u64 > self.bytes_max {
            self.dropped_count += 1;
            return Ok(());
        }
        let name = format!("{:020}-{engine}.body", self.next);
        let path = self.folder.path().join(&name);
        self.next += 1;
        let cannot = |error| {
            anyhow::Error::from(error)
                .context(format!("cannot keep what is to be sent in {}", path.display()))
        };
        let kept = NewFile::create_in(&self.folder, Path::new(&name)).and_then(|mut file| {
            file.write_all(body)?;
            file.keep()
        });
        if kept.is_err() {
            self.dropped_count += 1;
        }
        kept.map(drop).map_err(cannot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&folder.path().join("spool"), 250).unwrap();
        for byte in 0..4_u8 {
            spool.keep("otlp", &[byte; 100]).unwrap();
        }
        assert_eq!(spool.dropped_count, 2);
        let again = Spool::open(&folder.path().join("spool"), 250).unwrap();
        let waiting = again.waiting();
        let first_bytes: Vec<u8> =
            waiting.iter().map(|(.., path, _)| std::fs::read(path).unwrap()[0]).collect();
        assert_eq!((first_bytes, again.next), (vec![2, 3], 4));
        spool.keep("otlp", &[9; 300]).unwrap();
        assert_eq!((spool.dropped_count, spool.waiting().len()), (5, 0));
    }
}
