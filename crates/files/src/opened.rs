//! Files opened for reading.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Largest size in bytes of lists and settings, which people write.
pub const LIST_BYTES_MAX: u64 = 64 << 20;

/// Opens a regular file. Other kinds are refused: a fifo may block, a device has no end, and
/// neither can be read at any offset.
///
/// # Errors
/// The path is no regular file, or cannot be opened.
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(no_file("it is a pipe or a device: name a regular file"));
    }
    Ok(file)
}

fn no_file(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Opens a regular file for reading: see [`open_regular`].
///
/// # Errors
/// The errors of [`open_regular`].
pub fn regular(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

/// Opens a regular file, or the pipe of a shell's process substitution (`<(zcat FILE)`). Such a
/// pipe has a writer, so that reading it does not block for ever. It cannot be read at any offset.
///
/// # Errors
/// The path is something else (a device, a named fifo), or cannot be opened.
pub fn readable(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let name = rustix::fs::readlink(own_name(&file), Vec::new())?;
    if !kind.is_fifo() || !name.as_bytes().starts_with(b"pipe:") {
        return Err(no_file(
            "it is a device or a named pipe: name a regular file, or give it by - on standard input",
        ));
    }
    // (Opening made a new file description, so that its flags are not shared with the shell's.)
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

fn own_name(file: &File) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Standard input: a file, a pipe, a socket or a terminal. Other devices are refused, because they
/// have no end.
///
/// # Errors
/// Standard input is another device.
pub fn standard_input() -> io::Result<io::Stdin> {
    let input = io::stdin();
    let kind = File::from(input.as_fd().try_clone_to_owned()?).metadata()?.file_type();
    if (kind.is_char_device() || kind.is_block_device()) && !rustix::termios::isatty(&input) {
        return Err(no_file("standard input is a device: give a file or a pipe"));
    }
    Ok(input)
}

/// The text of a file of at most `most_bytes`, such as lists and settings.
///
/// # Errors
/// The file is not text, or too large; or an error of [`readable`].
pub fn read_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    readable(path)?.take(most_bytes.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most_bytes {
        let what = format!("it has more than {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn devices_and_named_pipes_are_refused_at_once_and_a_shells_pipe_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/full"), folder.path()] {
            assert!(regular(path).is_err(), "{}", path.display());
            assert!(readable(path).is_err(), "{}", path.display());
            assert!(read_text(path, 9).is_err(), "{}", path.display());
        }
        let (end, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"a line").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", end.as_raw_fd());
        assert_eq!(read_text(Path::new(&path), 6).unwrap(), "a line");
    }

    #[test]
    fn a_text_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read_text(&path, 3).unwrap(), "abc");
        assert_eq!(read_text(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
