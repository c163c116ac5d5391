//! Copies a process again and again, as a graph capture does, without searching the copy. Prints
//! one line of JSON, in microseconds: pauses and their parts, and how long the borrowed thread ran
//! and waited for a processor meanwhile.
use std::time::Duration;

use heapr_inject::{HeldProcess, HoldParts, HoldRequest, Look, ReadFrom, hold};
use heapr_session::{Session, SessionProperties};
use serde_json::{Value, json};

/// Reads what a graph capture reads while the process stands still.
struct Glance(u32);

impl Look for Glance {
    fn stands_still(&mut self) {}

    fn take_down(&mut self) -> bool {
        drop(heapr_proc::mappings::read(self.0));
        drop(heapr_proc::kernel_words(self.0));
        true
    }

    fn look(&mut self, _: &HeldProcess, _: ReadFrom, _: &dyn Fn() -> bool) {}
}

/// Time on a processor and time of waiting for one, of the process's first thread.
fn scheduled(pid: u32) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap_or(0) / 1000);
    [words.next().unwrap_or(0), words.next().unwrap_or(0)]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, pid, rounds] = arguments.as_slice() else {
        return Err("usage: graph_pause PID ROUNDS".into());
    };
    let (pid, rounds): (u32, usize) = (pid.parse()?, rounds.parse()?);
    let folder = std::env::temp_dir().join(format!("heapr-pause-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut properties = SessionProperties::new(folder.join("trace.heapr"));
    properties.overwrite = true;
    let mut session = Session::start(properties)?;
    session.attach(pid)?;
    let (mut pauses, mut parts, mut ran, mut waited) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut uncopied = None;
    for _ in 0..rounds {
        for _ in 0..20 {
            session.step();
            std::thread::sleep(Duration::from_millis(5));
        }
        let before = scheduled(pid);
        let report = hold(pid, HoldRequest { copies: true, ..HoldRequest::default() }, &mut Glance(pid))?;
        let after = scheduled(pid);
        pauses.push(report.pause);
        parts.push(report.parts);
        ran.push(Duration::from_micros(after[0] - before[0]));
        waited.push(Duration::from_micros(after[1] - before[1]));
        uncopied = uncopied.or(report.no_copy);
    }
    session.detach(pid)?;
    drop(session.stop());
    std::fs::remove_dir_all(&folder)?;
    let shares = |mut all: Vec<Duration>| -> Value {
        all.sort();
        let at = |percent: usize| all[(all.len() * percent / 100).min(all.len() - 1)].as_micros();
        json!([at(50), at(99)])
    };
    let part = |of: fn(&HoldParts) -> Duration| shares(parts.iter().map(of).collect());
    let report = json!({
        "rounds": rounds, "uncopied": uncopied, "pause_us": shares(pauses),
        "stop_us": part(|parts| parts.stop), "settle_us": part(|parts| parts.settle),
        "registers_us": part(|parts| parts.registers), "copy_us": part(|parts| parts.copy),
        "take_down_us": part(|parts| parts.take_down), "resume_us": part(|parts| parts.resume),
        "ran_us": shares(ran), "waited_us": shares(waited),
    });
    println!("{report}");
    Ok(())
}
