//! Terminal for a program of a test: a pty of which the test is the screen and the keyboard.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Program on a terminal of its own, which is its controlling one.
#[derive(Debug)]
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    controller: Option<Arc<OwnedFd>>,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    /// Starts a program. `setsid` becomes the program, so that the process is the program's.
    pub(crate) fn start(command: &Command, columns: u16, lines: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())).to_owned();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let device = || rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
        let mut leader = Command::new("setsid");
        leader.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => leader.env(name, value),
                None => leader.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            leader.current_dir(folder);
        }
        leader.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let child = leader.stdin(device()).stdout(device()).stderr(device()).spawn().unwrap();
        let controller = Arc::new(controller);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (source, sink) = (File::from(controller.try_clone().unwrap()), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut source = source;
            let mut bytes = [0; 4096];
            // An error means that no process has the terminal any more.
            while let Ok(count @ 1..) = source.read(&mut bytes) {
                sink.lock().unwrap().extend(&bytes[..count]);
            }
        });
        Self { child, controller: Some(controller), shown }
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
    pub(crate) fn type_keys(&self, keys: &str) {
        let controller = self.controller.as_ref().unwrap();
        File::from(controller.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.controller.as_ref().unwrap(), size).unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the program's end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        heapr_testkit::wait_until("the program ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
