//! The folder of incidents: a file each, with bounds on number, size and age.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapr_files::{NewFile, OwnFolder};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::incident::{Incident, SCHEMA};

/// Largest size of an incident's file in bytes.
const INCIDENT_BYTES_MAX: u64 = 16 << 20;
/// Largest number of files that a listing reads.
const LISTED_MAX: usize = 100_000;

/// Failure of the folder or of a file in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Folder that cannot be opened or made.
    #[error("the folder of incidents {}: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Reason.
        reason: io::Error,
    },
    /// File that cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: io::Error,
    },
    /// File that cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: io::Error,
    },
    /// File with contents of another form.
    #[error("{} is no incident: {reason}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Reason, with line and column.
        reason: serde_json::Error,
    },
    /// File of another version.
    #[error("{} has the form {found:?}, which this heapr does not read", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Name of the form.
        found: String,
    },
    /// Number without a file.
    #[error("no incident {number} in {}: `heapr incidents` lists them", path.display())]
    NoSuch {
        /// Requested number.
        number: u32,
        /// The folder.
        path: PathBuf,
    },
    /// Folder that another watcher uses.
    #[error("another heapr watches into {} already: --output names another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
}

/// Bounds of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Largest number of incidents.
    pub count: usize,
    /// Largest size of all incidents with their recordings, in bytes.
    pub bytes: u64,
    /// Largest age.
    pub age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { count: 100, bytes: 1 << 30, age: Duration::from_secs(30 * 24 * 3600) }
    }
}

/// Incident of a listing, or the reason for which it cannot be read.
pub type Summary = (u32, Result<Incident, StoreError>);

/// Folder of incidents.
#[derive(Debug)]
pub struct Store {
    folder: OwnFolder,
}

impl Store {
    /// Opens a folder.
    ///
    /// # Errors
    /// The folder does not exist, or others may write to it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let folder =
            OwnFolder::open(path).map_err(|reason| StoreError::Folder { path: path.to_owned(), reason })?;
        Ok(Self { folder })
    }

    /// Opens a folder for writing, and makes it if it does not exist. The lock on it ends with the
    /// process.
    ///
    /// # Errors
    /// The folder cannot be made, or another watcher uses it.
    pub fn made(path: &Path) -> Result<Self, StoreError> {
        let folder =
            OwnFolder::made(path).map_err(|reason| StoreError::Folder { path: path.to_owned(), reason })?;
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::flock(&folder, lock) {
            Ok(()) => Ok(Self { folder }),
            Err(Errno::WOULDBLOCK) => Err(StoreError::InUse { path: path.to_owned() }),
            Err(error) => Err(StoreError::Folder { path: path.to_owned(), reason: error.into() }),
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// Path of an incident's file.
    #[must_use]
    pub fn path(&self, number: u32) -> PathBuf {
        self.folder.path().join(file_name(number))
    }

    /// Path of the copy of a recording that belongs to an incident.
    #[must_use]
    pub fn recording_path(&self, number: u32) -> PathBuf {
        self.folder.path().join(recording_name(number))
    }

    /// Numbers of all incidents, oldest first.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.folder.path()).into_iter().flatten().flatten().take(LISTED_MAX);
        let mut numbers: Vec<u32> =
            entries.filter_map(|entry| number_of(entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Reads all incidents, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Summary> {
        self.numbers().into_iter().map(|number| (number, self.read(number))).collect()
    }

    /// Reads an incident.
    ///
    /// # Errors
    /// The incident does not exist, or its file has another form.
    pub fn read(&self, number: u32) -> Result<Incident, StoreError> {
        let path = self.path(number);
        let file = match self.folder.regular(Path::new(&file_name(number))) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NoSuch { number, path: self.folder.path().to_owned() });
            }
            Err(reason) => return Err(StoreError::Read { path, reason }),
        };
        let mut bytes = Vec::new();
        let read = file.take(INCIDENT_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|reason| StoreError::Read { path: path.clone(), reason })?;
        let incident: Incident = serde_json::from_slice(&bytes)
            .map_err(|reason| StoreError::Form { path: path.clone(), reason })?;
        if incident.schema != SCHEMA {
            return Err(StoreError::Version { path, found: incident.schema });
        }
        Ok(incident)
    }

    /// Number of the next incident. Numbers are not used again while a later incident exists: other
    /// systems refer to them.
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.numbers().last().map_or(1, |last| last.saturating_add(1))
    }

    /// Writes an incident under its number, whole and on the disk.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn write(&self, incident: &mut Incident) -> Result<PathBuf, StoreError> {
        SCHEMA.clone_into(&mut incident.schema);
        let path = self.path(incident.number);
        let failed = |reason| StoreError::Write { path: path.clone(), reason };
        let mut bytes = serde_json::to_vec_pretty(incident).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        let mut file =
            NewFile::create_in(&self.folder, Path::new(&file_name(incident.number))).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        file.keep().map_err(failed)
    }

    /// Removes an incident and its recording.
    pub fn remove(&self, number: u32) {
        for name in [recording_name(number), file_name(number)] {
            let _ = rustix::fs::unlinkat(&self.folder, name.as_str(), AtFlags::empty());
        }
    }

    /// Removes the oldest incidents until the folder keeps its bounds. The newest one stays.
    pub fn keep_within(&self, bounds: &Bounds) {
        let numbers = self.numbers();
        let size = |number: &u32| {
            let length = |path: PathBuf| path.symlink_metadata().map_or(0, |metadata| metadata.len());
            length(self.path(*number)).saturating_add(length(self.recording_path(*number)))
        };
        let is_too_old = |number: &u32| {
            let modified =
                self.path(*number).symlink_metadata().and_then(|metadata| metadata.modified()).ok();
            modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > bounds.age)
        };
        let mut bytes = 0_u64;
        for (place, number) in numbers.iter().rev().enumerate() {
            bytes = bytes.saturating_add(size(number));
            if place > 0 && (place >= bounds.count || bytes > bounds.bytes || is_too_old(number)) {
                self.remove(*number);
            }
        }
    }
}

/// Beginning of the names of incidents' files.
const STEM: &str = "incident-";

fn file_name(number: u32) -> String {
    format!("{STEM}{number:06}.json")
}

fn recording_name(number: u32) -> String {
    format!("{STEM}{number:06}.heapr")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(STEM)?.strip_suffix(".json")?;
    // Other forms of a number are names of other files.
    digits.parse().ok().filter(|&number| file_name(number) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let base = tempfile::tempdir().unwrap();
        let store = Store::made(&base.path().join("incidents")).unwrap();
        (base, store)
    }

    #[test]
    fn incidents_are_read_as_they_were_written_and_numbers_go_on() {
        let (_base, store) = store();
        let mut incident = Incident { number: store.next_number(), time_unix_ns: 5, ..Incident::default() };
        store.write(&mut incident).unwrap();
        assert_eq!(store.read(1).unwrap(), incident);
        incident.number = store.next_number();
        store.write(&mut incident).unwrap();
        store.remove(1);
        assert_eq!((store.numbers(), store.next_number()), (vec![2], 3));
        assert!(matches!(store.read(1), Err(StoreError::NoSuch { number: 1, .. })));
    }

    #[test]
    fn the_oldest_go_first_and_the_newest_stays() {
        let (_base, store) = store();
        for number in 1..=5 {
            store.write(&mut Incident { number, ..Incident::default() }).unwrap();
            fs::write(store.recording_path(number), vec![0; 10_000]).unwrap();
        }
        store.keep_within(&Bounds { count: 3, ..Bounds::default() });
        assert_eq!(store.numbers(), [3, 4, 5]);
        assert!(!store.recording_path(2).exists() && store.recording_path(3).exists());
        store.keep_within(&Bounds { bytes: 25_000, ..Bounds::default() });
        assert_eq!(store.numbers(), [4, 5]);
        store.keep_within(&Bounds { count: 0, bytes: 0, age: Duration::ZERO });
        assert_eq!(store.numbers(), [5]);
    }

    #[test]
    fn files_of_another_form_are_refused_and_listed() {
        let (_base, store) = store();
        let write = |number, text: &str| fs::write(store.path(number), text).unwrap();
        write(1, "{\"schema\": \"heapr.incident/2\"}");
        write(2, "{\"schema\": 3");
        write(3, "{\"schema\": \"heapr.incident/1\", \"process\": {\"pid\": -1}}");
        std::os::unix::fs::symlink(store.path(1), store.path(4)).unwrap();
        fs::write(store.folder().path().join("incident-x.json"), "").unwrap();
        fs::write(store.folder().path().join("incident-7.json"), "").unwrap();
        assert_eq!(store.numbers(), [1, 2, 3, 4]);
        assert!(store.all().iter().all(|(_, read)| read.is_err()));
        assert!(store.read(2).unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn a_folder_has_one_watcher() {
        let (base, store) = store();
        let path = base.path().join("incidents");
        assert!(matches!(Store::made(&path), Err(StoreError::InUse { .. })));
        assert!(Store::open(&path).is_ok());
        drop(store);
        assert!(Store::made(&path).is_ok());
    }
}
