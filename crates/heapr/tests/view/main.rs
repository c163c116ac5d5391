//! Page of `heapr view`: its own tests, its build from the sources, and its use in Chromium and
//! Firefox.
//!
//! The tests are written in JavaScript (`ui/src/*.test.ts`, `ui/e2e/*.test.mjs`) and run here, each
//! with a time-out.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Runs a program in `ui/` in a process group of its own. Returns its output, and fails if it
/// fails.
fn run_in_ui(words: &[&str], limit: Duration) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let output_path = scratch.path().join("output");
    let output = File::create(&output_path).unwrap();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .current_dir(ui())
        .env("HEAPR", env!("CARGO_BIN_EXE_heapr"))
        .env("NO_COLOR", "1")
        .env("npm_config_update_notifier", "false")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let read = || String::from_utf8_lossy(&std::fs::read(&output_path).unwrap_or_default()).into_owned();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > limit {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            panic!("{words:?} was not done after {limit:?}:\n{}", read());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = read();
    assert!(status.success(), "{words:?} ended with {status}:\n{text}");
    text
}

/// Test that measures frames.
const SMOOTH: &str = "e2e/smooth.test.mjs";

/// Lock on the processors: shared by tests that use them, exclusive for the test that measures
/// frames.
static PROCESSORS: RwLock<()> = RwLock::new(());

fn shared() -> RwLockReadGuard<'static, ()> {
    PROCESSORS.read().unwrap_or_else(PoisonError::into_inner)
}

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui")
}

/// Installs the packages of the lock file, once. A folder installed from the same lock file is
/// reused.
fn install() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let stamp = ui().join("node_modules/.heapr-lock");
        let lock = std::fs::read(ui().join("package-lock.json")).unwrap();
        if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
            return;
        }
        run_in_ui(&["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], Duration::from_secs(180));
        std::fs::write(stamp, lock).unwrap();
    });
}

/// Runs tests of node's own runner and checks that it ran some.
fn run_browser_tests(file: &str) {
    // One browser runs at a time, and alone while its frames are measured: otherwise each waits for
    // a processor.
    static BROWSER: Mutex<()> = Mutex::new(());
    install();
    let _only = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let measures_frames = file == SMOOTH;
    let _alone = measures_frames.then(|| PROCESSORS.write().unwrap_or_else(PoisonError::into_inner));
    let _beside = (!measures_frames).then(shared);
    let output = run_in_ui(&["node", "--test", file], Duration::from_secs(900));
    let passed = output
        .lines()
        .find_map(|line| {
            line.trim_start_matches(|first: char| !first.is_ascii_alphabetic()).strip_prefix("pass ")
        })
        .and_then(|count| count.trim().parse::<u32>().ok());
    assert!(passed.is_some_and(|count| count > 0), "no test of {file} was run:\n{output}");
}

#[test]
fn the_checked_in_page_is_what_its_sources_build() {
    install();
    let _beside = shared();
    let said = run_in_ui(&["node", "build.mjs", "--check"], Duration::from_secs(120));
    assert!(said.contains("bytes compressed"), "{said}");
}

#[test]
fn the_sources_of_the_page_are_sound() {
    install();
    let _beside = shared();
    run_in_ui(&["npx", "--no-install", "tsc", "--noEmit"], Duration::from_secs(120));
    let said = run_in_ui(&["node", "test.mjs"], Duration::from_secs(120));
    assert!(said.contains("\n# fail 0"), "{said}");
}

#[test]
fn the_page_holds_what_must_hold_for_any_data() {
    run_browser_tests("e2e/mock.test.mjs");
}

#[test]
fn cards_and_pictures_tell_what_stands_beside_the_amounts() {
    run_browser_tests("e2e/cards.test.mjs");
}

#[test]
fn names_are_read_before_their_callers_and_leave_no_crumbs() {
    run_browser_tests("e2e/names.test.mjs");
}

#[test]
fn a_card_of_a_java_program_names_its_own_method() {
    run_browser_tests("e2e/java.test.mjs");
}

#[test]
fn each_kind_of_recording_has_the_cells_of_its_commands() {
    run_browser_tests("e2e/kinds.test.mjs");
}

#[test]
fn a_heap_and_the_recording_of_its_process_have_one_time() {
    run_browser_tests("e2e/tied.test.mjs");
}

#[test]
fn the_first_screen_is_the_picture_of_the_read_me() {
    run_browser_tests("e2e/picture.test.mjs");
}

#[test]
fn scrolling_and_panning_have_no_frame_over_33_ms() {
    run_browser_tests(SMOOTH);
}

#[test]
fn the_page_shows_of_a_trace_what_the_command_line_prints() {
    run_browser_tests("e2e/trace.test.mjs");
}

#[test]
fn the_page_shows_native_snapshots_and_a_session_that_runs() {
    run_browser_tests("e2e/native.test.mjs");
}

#[test]
fn the_page_shows_of_resident_memory_what_heapr_explain_prints() {
    run_browser_tests("e2e/resident.test.mjs");
}

#[test]
fn no_view_violates_wcag_aa_in_either_theme() {
    run_browser_tests("e2e/axe.test.mjs");
}

#[test]
fn a_thousand_cells_of_the_page_are_those_of_the_command_line() {
    run_browser_tests("e2e/cells.test.mjs");
}

#[test]
fn what_is_shown_is_shared_and_what_is_dropped_is_shown() {
    run_browser_tests("e2e/sharing.test.mjs");
}

#[test]
fn a_page_without_a_server_shows_what_was_recorded() {
    run_browser_tests("e2e/static.test.mjs");
}

#[test]
fn the_page_is_drawn_in_firefox() {
    run_browser_tests("e2e/firefox.test.mjs");
}

#[test]
fn the_page_shows_of_snapshots_what_the_command_line_prints() {
    run_browser_tests("e2e/snapshot.test.mjs");
}
