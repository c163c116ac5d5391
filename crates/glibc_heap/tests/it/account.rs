//! Runs `programs/heap_account.c` and reads the account that the program writes of its own heap.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A program that holds a heap and waits.
pub(crate) struct Holder {
    child: Child,
    pub(crate) account: Account,
    _folder: tempfile::TempDir,
}

/// Account of the heap by the program.
#[derive(Default)]
pub(crate) struct Account {
    /// Usable size of each live block, by address.
    pub(crate) live: HashMap<u64, u64>,
    /// Addresses that were freed and not allocated again.
    pub(crate) freed: HashSet<u64>,
    /// uordblks, hblks, hblkhd, arena, fordblks of mallinfo2.
    pub(crate) info: [u64; 5],
    pub(crate) thread_pointers: Vec<u64>,
}

/// The shape of a heap.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    pub(crate) blocks: usize,
    pub(crate) threads: usize,
    pub(crate) tunables: &'a str,
    /// A loader and a folder of libraries, to run with another glibc.
    pub(crate) loader: Option<(&'a Path, &'a Path)>,
}

impl Default for Shape<'_> {
    fn default() -> Self {
        Self { name: "mixed", seed: 1, blocks: 2000, threads: 0, tunables: "", loader: None }
    }
}

/// Builds the program once.
pub(crate) fn program() -> PathBuf {
    static ONCE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _only = ONCE.lock();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/heap_account.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap_account");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    if modified(&program) < modified(&source) {
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-g", "-Wall", "-Wno-unused-result", "-D_GNU_SOURCE", "-pthread", "-o"]);
        let status = compiler.arg(&program).arg(&source).status().expect("gcc");
        assert!(status.success(), "heap_account.c does not compile");
    }
    program
}

impl Holder {
    /// Starts the program and waits until its heap is complete.
    pub(crate) fn start(shape: Shape<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("account");
        let mut command = match shape.loader {
            Some((loader, libraries)) => {
                let mut command = Command::new(loader);
                // The machine's own program may need a newer glibc than the old one; then a program
                // lies beside the old libraries.
                let own = libraries.join("heap_account");
                let program = if own.is_file() { own } else { program() };
                command.arg("--library-path").arg(libraries).arg(program);
                command
            }
            None => Command::new(program()),
        };
        command.arg(shape.name).arg(&file).arg(shape.seed.to_string());
        command.arg(shape.blocks.to_string()).arg(shape.threads.to_string());
        if !shape.tunables.is_empty() {
            command.env("GLIBC_TUNABLES", shape.tunables);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        let mut holder = Self { child, account: Account::default(), _folder: folder };
        let line = receiver.recv_timeout(Duration::from_secs(120)).expect("the program is not ready in time");
        assert_eq!(line, "ready\n", "shape {}", shape.name);
        holder.account = Account::read(&file);
        holder
    }

    /// Process id of the program.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Account {
    fn read(file: &Path) -> Self {
        let mut account = Self::default();
        let bytes = std::fs::read(file).unwrap();
        for record in bytes.chunks_exact(24) {
            let word =
                |index: usize| u64::from_le_bytes(record[index * 8..index * 8 + 8].try_into().unwrap());
            match word(0) {
                1 => {
                    let before = account.live.insert(word(1), word(2));
                    assert_eq!(before, None, "the account holds a block twice");
                }
                2 => {
                    account.freed.insert(word(1));
                }
                3 => account.info[word(2) as usize] = word(1),
                _ => account.thread_pointers.push(word(1)),
            }
        }
        account.freed.retain(|block| !account.live.contains_key(block));
        account
    }
}
