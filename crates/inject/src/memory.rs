//! Memory of another process: reading it in batches, and writing code into it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use heapr_proc::Mapping;
use heapr_proc::{mappings, telling_thread};

/// A part of the target's memory that could not be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot access {bytes} bytes of the target's memory at {address_avma:#x}")]
pub struct Unreachable {
    /// First address.
    pub address_avma: u64,
    /// Number of bytes.
    pub bytes: usize,
}

/// Access to the target's memory and mappings. All content is untrusted.
pub trait TargetMemory {
    /// Fills `into` from `address_avma`.
    ///
    /// # Errors
    /// Returns an error if not all of it is readable.
    fn read(&self, address_avma: u64, into: &mut [u8]) -> Result<(), Unreachable>;

    /// Fills several pieces, with as few system calls as possible.
    ///
    /// # Errors
    /// The error of [`Self::read`]; the pieces before the unreadable one are filled.
    fn read_batch(&self, pieces: &mut [(u64, &mut [u8])]) -> Result<(), Unreachable> {
        pieces.iter_mut().try_for_each(|(address_avma, into)| self.read(*address_avma, into))
    }

    /// Mappings, ordered by address.
    ///
    /// # Errors
    /// Returns an error if the process is gone.
    fn mappings(&self) -> std::io::Result<Vec<Mapping>>;

    /// Reads a word of 8 bytes.
    ///
    /// # Errors
    /// The error of [`Self::read`].
    fn read_u64(&self, address_avma: u64) -> Result<u64, Unreachable> {
        let mut word = [0; 8];
        self.read(address_avma, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Reads 4 bytes as a number.
    ///
    /// # Errors
    /// The error of [`Self::read`].
    fn read_u32(&self, address_avma: u64) -> Result<u32, Unreachable> {
        let mut word = [0; 4];
        self.read(address_avma, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    /// Reads `count` bytes.
    ///
    /// # Errors
    /// The error of [`Self::read`].
    fn read_vec(&self, address_avma: u64, count: usize) -> Result<Vec<u8>, Unreachable> {
        let mut bytes = vec![0; count];
        self.read(address_avma, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a zero-terminated string of at most `bytes_max` bytes; a longer one is cut.
    ///
    /// # Errors
    /// Returns an error if its first byte cannot be read.
    fn read_string(&self, address_avma: u64, bytes_max: usize) -> Result<Vec<u8>, Unreachable> {
        const PIECE: u64 = 256;
        let mut text = Vec::new();
        while text.len() < bytes_max {
            let at = address_avma.wrapping_add(text.len() as u64);
            // Each read ends at a multiple of `PIECE`, so that it never touches a page that the
            // string does not reach.
            let mut piece = vec![0; (PIECE - at % PIECE) as usize];
            match self.read(at, &mut piece) {
                Err(error) if text.is_empty() => return Err(error),
                Err(_) => break,
                Ok(()) => {}
            }
            if let Some(end) = piece.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&piece[..end]);
                break;
            }
            text.append(&mut piece);
        }
        text.truncate(bytes_max);
        Ok(text)
    }
}

/// Memory of a process that this one may trace.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    /// The file `/proc/PID/mem`: writes reach pages that the process itself may not write.
    file: File,
}

/// Largest number of pieces of one system call (`IOV_MAX`).
const PIECES_MAX: usize = 1024;

impl ProcessMemory {
    /// Opens the memory of `pid`.
    ///
    /// # Errors
    /// Returns an error if the process does not exist, or may not be traced.
    pub fn open(pid: u32) -> std::io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", telling_thread(pid)))?;
        Ok(Self { pid, file })
    }

    /// Writes into the target, whatever the protection of its pages.
    ///
    /// # Errors
    /// Returns an error if the range is not mapped.
    pub fn write(&self, address_avma: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        self.file
            .write_all_at(bytes, address_avma)
            .map_err(|_| Unreachable { address_avma, bytes: bytes.len() })
    }
}

impl TargetMemory for ProcessMemory {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> Result<(), Unreachable> {
        let bytes = into.len();
        self.file.read_exact_at(into, address_avma).map_err(|_| Unreachable { address_avma, bytes })
    }

    fn read_vec(&self, address_avma: u64, count: usize) -> Result<Vec<u8>, Unreachable> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            let left = count - bytes.len();
            let offset = address_avma.wrapping_add(bytes.len() as u64).cast_signed();
            // SAFETY: the spare capacity has room for the bytes that are left. The kernel writes
            // nowhere else.
            let read = unsafe {
                let room = bytes.spare_capacity_mut().as_mut_ptr();
                libc::pread(self.file.as_raw_fd(), room.cast(), left, offset)
            };
            match usize::try_from(read) {
                Ok(read @ 1..) => {
                    // SAFETY: the kernel has written `read` bytes behind the length.
                    unsafe { bytes.set_len(bytes.len() + read) };
                }
                Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Err(Unreachable { address_avma, bytes: count }),
            }
        }
        Ok(bytes)
    }

    fn read_batch(&self, pieces: &mut [(u64, &mut [u8])]) -> Result<(), Unreachable> {
        for group in pieces.chunks_mut(PIECES_MAX) {
            let wanted: usize = group.iter().map(|(_, into)| into.len()).sum();
            let local: Vec<libc::iovec> = group
                .iter_mut()
                .map(|(_, into)| libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() })
                .collect();
            let remote: Vec<libc::iovec> = group
                .iter()
                .map(|(address, into)| libc::iovec { iov_base: *address as *mut _, iov_len: into.len() })
                .collect();
            // SAFETY: the local pieces are exclusive borrows of these lengths; the kernel writes
            // nowhere else.
            let count = unsafe {
                libc::process_vm_readv(
                    self.pid.cast_signed(),
                    local.as_ptr(),
                    local.len() as u64,
                    remote.as_ptr(),
                    remote.len() as u64,
                    0,
                )
            };
            if count.cast_unsigned() != wanted {
                // The pieces are read one by one to find the unreadable one, or if one call could
                // not read all.
                for (address_avma, into) in group {
                    self.read(*address_avma, into)?;
                }
            }
        }
        Ok(())
    }

    fn mappings(&self) -> std::io::Result<Vec<Mapping>> {
        mappings::read(self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_sees_its_own_memory() {
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let (first, second) = (0x1122_3344_5566_7788_u64, *b"a string\0");
        assert_eq!(memory.read_u64(&raw const first as u64), Ok(first));
        assert_eq!(memory.read_string(second.as_ptr() as u64, 100), Ok(b"a string".to_vec()));
        let (mut one, mut two) = ([0; 8], [0; 4]);
        let mut pieces = [(&raw const first as u64, &mut one[..]), (second.as_ptr() as u64, &mut two[..])];
        memory.read_batch(&mut pieces).unwrap();
        assert_eq!((u64::from_le_bytes(one), &two), (first, b"a st"));
        assert!(memory.read_u64(8).is_err());
        assert_eq!(memory.read_vec(second.as_ptr() as u64, second.len()), Ok(second.to_vec()));
        assert_eq!(memory.read_vec(8, 4), Err(Unreachable { address_avma: 8, bytes: 4 }));
        let mappings = memory.mappings().unwrap();
        let here = mappings::find(&mappings, this_process_sees_its_own_memory as *const () as u64).unwrap();
        assert!(here.is_executable);
    }
}
