//! Test with a page in Chromium, if the machine has it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use heapr_v8::analysis::{Confidence, detached, suspects};

use crate::expectation::Expectation;
use crate::program::victims;
use crate::{open, shown, taking};

const VICTIM: &str = "detached_dom.html";

/// Browser that is stopped on drop.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Browser {
    fn start(profile: &std::path::Path) -> Option<Self> {
        let child = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(victims().join(VICTIM))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let browser = match child {
            Ok(child) => Self(child),
            Err(error) => {
                eprintln!("chromium does not start: {error}: nothing is tested");
                return None;
            }
        };
        let port_file = profile.join("DevToolsActivePort");
        heapr_testkit::wait_until("its port is open", || port_file.exists().then_some(()));
        Some(browser)
    }
}

#[test]
fn rows_that_were_taken_out_of_the_page() {
    let directory = tempfile::tempdir().expect("a directory for the profile and snapshots");
    let Some(browser) = Browser::start(directory.path()) else { return };
    let mut files = Vec::new();
    for number in 0..3 {
        // The page runs without further commands.
        std::thread::sleep(Duration::from_millis(700));
        let file = directory.path().join(format!("{number}.heapsnapshot"));
        taking::take(browser.0.id(), Some(VICTIM), &file);
        files.push(file);
    }
    drop(browser);
    let heaps = open(&files);
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 5);
    let shown = shown(&found);
    let first = found.suspects.first().expect("a suspect");
    Expectation::of(VICTIM).check(first, &shown);
    assert_eq!(first.confidence, Confidence::High, "{shown}");
    let last = heaps.last().expect("three heaps");
    assert!(!detached(last, 10).is_empty());
}
