//! Stage for sessions: a program to trace, and waiting for what a session shows.

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use heapr_testkit::Outcome;
use serde_json::Value;

/// Path of the heapr under test.
pub(crate) const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

/// Sessions of one test with the program of `steady.c`; all end when this is dropped.
#[derive(Debug)]
pub(crate) struct Stage(heapr_testkit::Stage);

impl Deref for Stage {
    type Target = heapr_testkit::Stage;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self(heapr_testkit::Stage::new(HEAPR))
    }

    /// Returns the path and arguments of the program of `steady.c`, which ends when
    /// [`Stage::release`] is called.
    pub(crate) fn steady(&self, rest_us: u32) -> Vec<String> {
        vec![steady_program().to_str().unwrap().to_owned(), self.argument("release"), rest_us.to_string()]
    }

    /// Starts the steady program by itself.
    pub(crate) fn spawn_steady(&self, rest_us: u32) -> std::process::Child {
        let words = self.steady(rest_us);
        let child = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).spawn().unwrap();
        wait_for_own_code(child.id());
        child
    }

    /// Starts a session with the steady program.
    pub(crate) fn start_steady(&self, name: &str, options: &[&str]) -> Outcome {
        let program = self.steady(200);
        let mut arguments = vec!["start", name];
        arguments.extend(options);
        arguments.push("--");
        arguments.extend(program.iter().map(String::as_str));
        self.heapr(&arguments)
    }

    /// Makes the steady programs end.
    pub(crate) fn release(&self) {
        File::create(self.path("release")).unwrap();
    }

    /// Returns the status of a session, from `heapr status NAME --format json`.
    pub(crate) fn status(&self, name: &str) -> Value {
        let value = self.json(&["status", name]);
        assert_eq!(value["schema"], "heapr.status/1");
        let socket = value["sessions"][0]["socket"].as_str().unwrap();
        assert!(socket.ends_with(&format!("/{name}.sock")), "{socket}");
        value["sessions"][0].clone()
    }

    /// Waits until `is_so` accepts a session's status.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        heapr_testkit::wait_until(&format!("session {name} shows {what}"), || {
            Some(self.status(name)).filter(|status| is_so(status))
        })
    }

    /// Waits until a session answers.
    pub(crate) fn wait_for_answer(&self, name: &str) {
        heapr_testkit::wait_until(&format!("session {name} answers"), || {
            (self.heapr(&["status", name]).status == 0).then_some(())
        });
    }

    /// Waits until a file that is being written holds events.
    pub(crate) fn wait_for_events_in(&self, file: &str) {
        heapr_testkit::wait_until(&format!("{file} holds events"), || {
            let info = self.heapr(&["info", file, "--format", "json"]).stdout;
            let info: Value = serde_json::from_str(&info).ok()?;
            info["event_count"].as_u64().filter(|&count| count > 0)
        });
    }

    /// Returns the running recorders and commands of this stage.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let variable = format!("HEAPR_RUNTIME_DIR={}", self.folder().display());
        let is_of_stage = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == Path::new(HEAPR))
                && environment.split(|&byte| byte == 0).any(|one| one == variable.as_bytes())
        };
        let names =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).filter(is_of_stage).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = File::create(self.path("release"));
    }
}

/// Waits until a program runs its own code and has allocated; before that it cannot be attached to.
pub(crate) fn wait_for_own_code(pid: u32) {
    heapr_testkit::wait_until("the program allocates", || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        maps.contains("[heap]").then_some(())
    });
}

/// Returns the program of `steady.c`, built once.
pub(crate) fn steady_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/steady.c");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join("steady");
        // Another process may run the tests at the same time: the file is always whole.
        let temporary = folder.join(format!("steady.{}", std::process::id()));
        let status = Command::new("gcc")
            .args(["-g", "-O1", "-fno-builtin", "-o"])
            .arg(&temporary)
            .arg(&source)
            .status()
            .unwrap();
        assert!(status.success(), "gcc {}", source.display());
        fs::rename(&temporary, &program).unwrap();
        program
    })
}
