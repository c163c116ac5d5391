//! Terminal for a program of a test: a pty of which the test is the screen and the keyboard.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Starts the program as the leader of a session on a new pty, and passes bytes on. The first line
/// is the program's process id. A line `\0COLUMNS LINES` of the input is a new size, and the end of
/// the input closes the terminal.
const BRIDGE: &str = r#"
import fcntl, os, pty, struct, sys, termios, threading
def resize(fd, columns, lines):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    resize(0, int(sys.argv[1]), int(sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
os.write(1, b"%d\n" % pid)
def show():
    try:
        while True:
            data = os.read(fd, 4096)
            if not data: break
            os.write(1, data)
    except OSError:
        pass
shower = threading.Thread(target=show)
shower.start()
def keys():
    while True:
        data = os.read(0, 4096)
        if not data: break
        if data[:1] == b"\0":
            resize(fd, *map(int, data[1:].split()))
        else:
            os.write(fd, data)
threading.Thread(target=keys, daemon=True).start()
_, status = os.waitpid(pid, 0)
shower.join()
os._exit(os.waitstatus_to_exitcode(status) & 255)
"#;

/// Program on a terminal of its own, which is its controlling one.
#[derive(Debug)]
pub(crate) struct OnTerminal {
    /// Process of the program.
    pub(crate) pid: u32,
    bridge: Child,
    keyboard: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    /// Starts a program.
    pub(crate) fn start(command: &Command, columns: u16, lines: u16) -> Self {
        let mut bridge = Command::new("python3");
        bridge.args(["-c", BRIDGE]).arg(columns.to_string()).arg(lines.to_string());
        bridge.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => bridge.env(name, value),
                None => bridge.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            bridge.current_dir(folder);
        }
        bridge.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let mut bridge = bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let keyboard = bridge.stdin.take().unwrap();
        let mut source = BufReader::new(bridge.stdout.take().unwrap());
        let mut line = String::new();
        source.read_line(&mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut bytes) {
                sink.lock().unwrap().extend(&bytes[..count]);
            }
        });
        Self { pid, bridge, keyboard, shown }
    }

    /// Returns all that was written, with the terminal's control sequences.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Forgets what was written.
    pub(crate) fn clear(&self) {
        self.shown.lock().unwrap().clear();
    }

    /// Waits until a text is written in one piece.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        heapr_testkit::wait_until(&format!("the terminal shows {text:?}"), || {
            self.shown().contains(text).then_some(())
        });
    }

    /// Types keys.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid.to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Takes the terminal away: its other side is closed.
    pub(crate) fn lose(&mut self) {
        self.bridge.kill().unwrap();
    }

    /// Waits for the end of the program and of its terminal; true if the program has succeeded.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> bool {
        heapr_testkit::wait_until("the program ends", || self.bridge.try_wait().unwrap()).success()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).stderr(Stdio::null()).status();
        let _ = self.bridge.kill();
        let _ = self.bridge.wait();
    }
}
