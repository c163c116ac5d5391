//! State of a watcher on the disk, from which the next one makes the incidents of its time.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use heapr_files::{NewFile, OwnFolder};
use serde::{Deserialize, Serialize};

use crate::course::Course;
use crate::group_events::GroupEvents;
use crate::incident::{Account, GroupFacts, ProcessNamed, WallTime};
use crate::store::StoreError;

/// Name of the file in the folder of incidents.
const FILE: &str = "watch.json";
/// Name and version of the form.
const SCHEMA: &str = "heapr.watch/1";
/// Largest size of the file in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// State of a watcher.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Journal {
    /// Name and version of the form.
    pub schema: String,
    /// Id of the machine's present run, which ends with a restart of the machine.
    pub boot_id: String,
    /// Time of writing.
    pub written_unix_ns: WallTime,
    /// Time of writing in microseconds since boot, to compare with the kernel's log.
    pub written_us: u64,
    /// Name of the session that records.
    pub session: String,
    /// Process of the recorder; 0: none runs.
    pub recorder_pid: u32,
    /// Start of the recorder in clock ticks since boot.
    pub recorder_start_ticks: u64,
    /// Path of the recording.
    pub recording: PathBuf,
    /// Watched groups.
    pub groups: Vec<JournalGroup>,
    /// Watched processes.
    pub processes: Vec<JournalProcess>,
}

/// Watched group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalGroup {
    /// Path of the group, from `/` on.
    pub path: String,
    /// Counters of the group and of those above it at the beginning, by path.
    pub counters: Vec<(String, GroupEvents)>,
    /// Last reading.
    pub facts: GroupFacts,
    /// Memory over time.
    pub course: Course,
}

/// Watched process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalProcess {
    /// Process id, and facts of its last reading.
    pub process: ProcessNamed,
    /// Start of the process in clock ticks since boot.
    pub start_ticks: u64,
    /// Last account of its resident memory.
    pub account: Option<Account>,
}

impl Journal {
    /// Reads the journal that a watcher left; `None`: it ended in order, or never ran.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub fn read(folder: &OwnFolder) -> Result<Option<Self>, StoreError> {
        let path = folder.path().join(FILE);
        let file = match folder.regular(Path::new(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(reason) => return Err(StoreError::Read { path, reason }),
        };
        let mut bytes = Vec::new();
        let read = file.take(BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|reason| StoreError::Read { path: path.clone(), reason })?;
        let journal: Self = serde_json::from_slice(&bytes)
            .map_err(|reason| StoreError::Form { path: path.clone(), reason })?;
        if journal.schema != SCHEMA {
            return Err(StoreError::Version { path, found: journal.schema });
        }
        Ok(Some(journal))
    }

    /// Writes the journal. A reader sees the old one or the new one, whole.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn write(&mut self, folder: &OwnFolder) -> Result<(), StoreError> {
        SCHEMA.clone_into(&mut self.schema);
        let failed = |reason| StoreError::Write { path: folder.path().join(FILE), reason };
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let mut file = NewFile::create_in(folder, Path::new(FILE)).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        file.keep_unsynced().map_err(failed)?;
        Ok(())
    }

    /// Removes the journal: the watcher ends in order.
    pub fn remove(folder: &OwnFolder) {
        let _ = rustix::fs::unlinkat(folder, FILE, rustix::fs::AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_it_was_written_and_another_form_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let folder = OwnFolder::made(&base.path().join("incidents")).unwrap();
        assert_eq!(Journal::read(&folder).unwrap(), None);
        let mut journal = Journal { session: "watch".to_owned(), written_us: 5, ..Journal::default() };
        journal.processes.push(JournalProcess { start_ticks: 7, ..JournalProcess::default() });
        journal.write(&folder).unwrap();
        journal.write(&folder).unwrap();
        assert_eq!(Journal::read(&folder).unwrap(), Some(journal));
        std::fs::write(folder.path().join(FILE), "{\"schema\": \"heapr.watch/2\"}").unwrap();
        assert!(Journal::read(&folder).unwrap_err().to_string().contains("heapr.watch/2"));
        std::fs::write(folder.path().join(FILE), "nonsense").unwrap();
        assert!(Journal::read(&folder).is_err());
        Journal::remove(&folder);
        assert_eq!(Journal::read(&folder).unwrap(), None);
    }
}
