//! A number of a control group that is read again and again.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::group_folder::GroupFolder;

/// File of a group with one number. It stays open: finding it by its path costs more than reading.
#[derive(Debug)]
pub struct GroupNumber(File);

impl GroupNumber {
    /// Opens a file of a group; `None` without such a file.
    pub fn open(group: &GroupFolder, name: &str) -> Option<Self> {
        File::open(group.folder().join(name)).ok().map(Self)
    }

    /// Reads the number of this moment; `None` if the group is gone, or the file has no number.
    pub fn read(&self) -> Option<u64> {
        let mut bytes = [0_u8; 32];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        std::str::from_utf8(bytes.get(..length)?).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_open_file_tells_the_number_of_each_moment() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("web")).unwrap();
        let file = top.path().join("web/memory.current");
        fs::write(&file, "4096\n").unwrap();
        let group = GroupFolder::copied(top.path(), "web", true);
        assert!(GroupNumber::open(&group, "memory.max").is_none());
        let number = GroupNumber::open(&group, "memory.current").unwrap();
        assert_eq!(number.read(), Some(4096));
        fs::write(&file, "812\n").unwrap();
        assert_eq!(number.read(), Some(812));
        fs::write(&file, "max\n").unwrap();
        assert_eq!(number.read(), None);
    }
}
