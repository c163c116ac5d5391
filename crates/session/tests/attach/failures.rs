//! Tests of the state after an attach fails at some step, or its process is killed.

use std::process::{Command, Stdio};
use std::time::Duration;

use heapr_session::{Error, InjectError};

use crate::victim::Victim;
use crate::{record_for, session};

#[test]
fn a_failure_at_any_step_leaves_the_program_as_it_was() {
    let mut victim = Victim::of("counted", &[]);
    let before = (victim.mapping_count(), victim.descriptors());
    let (mut session, _folder) = session();
    let mut step = 1;
    let report = loop {
        match session.attach_failing_at(victim.pid(), Some(step)) {
            Err(Error::Inject { source: InjectError::MadeToFail { step: failed } }) => {
                assert_eq!(failed, step)
            }
            Ok(report) => break report,
            Err(error) => panic!("step {step}: {error}"),
        }
        assert_eq!(victim.descriptors(), before.1, "step {step}");
        assert!(victim.mapping_count() <= before.0 + 1, "step {step}");
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
        step += 1;
    };
    // One step for each hook, and the steps before.
    assert!(step as usize > report.hooks.len() + 8, "{step}");
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    session.detach(victim.pid()).unwrap();
    drop(session.stop());
}

/// Process that is killed in another test; alone it does nothing.
#[test]
fn attaches_when_told_to() {
    let Ok(pid) = std::env::var("HEAPR_TEST_ATTACH_TO") else { return };
    let pid: u32 = pid.parse().unwrap();
    let (mut session, _folder) = session();
    loop {
        if session.attach(pid).is_ok() {
            record_for(&mut session, 3);
            drop(session.detach(pid));
        }
    }
}

/// Process that dies in another test; alone it does nothing.
#[test]
fn attaches_once_when_told_to() {
    let Ok(pid) = std::env::var("HEAPR_TEST_ATTACH_ONCE_TO") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let pid: u32 = pid.parse().unwrap();
    let (mut session, _folder) = session();
    heapr_session::die_at(number("HEAPR_TEST_DIE_AT"), number("HEAPR_TEST_STOPS") != 0);
    session.attach(pid).unwrap();
    record_for(&mut session, 3);
    session.detach(pid).unwrap();
}

/// Step between the moments of death that are tried; HEAPR_DEATH_STRIDE=1 tries all.
const DEATH_STRIDE: usize = 9;

/// Mappings and descriptors of heapr in a program, and code mappings without a file.
fn remains(victim: &Victim) -> (Vec<String>, Vec<std::path::PathBuf>) {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", victim.pid())).unwrap();
    let is_ours = |line: &&str| {
        line.contains("heapr") || line.contains(" r-xp ") && line.split_whitespace().nth(4) == Some("0")
    };
    (maps.lines().filter(is_ours).map(str::to_owned).collect(), victim.descriptors())
}

/// An attach that takes over finds threads still on loan. The program is stopped for a while at
/// that moment, which resembles threads that wait for a processor.
#[test]
fn killed_with_a_thread_on_loan_nothing_is_left_behind_the_next_attach() {
    let stride = std::env::var("HEAPR_DEATH_STRIDE").map_or(DEATH_STRIDE, |text| text.parse().unwrap());
    let mut victim = Victim::of("threads", &["4"]);
    let before = remains(&victim);
    for stops in [false, true] {
        let mut death_count = 0;
        for moment in (1 + usize::from(stops) * stride / 2..).step_by(stride) {
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["failures::attaches_once_when_told_to", "--exact"])
                .env("HEAPR_TEST_ATTACH_ONCE_TO", victim.pid().to_string())
                .env("HEAPR_TEST_DIE_AT", moment.to_string())
                .env("HEAPR_TEST_STOPS", u32::from(stops).to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                break;
            }
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "moment {moment}");
            death_count += 1;
            let (mut session, _folder) = session();
            let pid = rustix::process::Pid::from_raw(victim.pid().cast_signed()).unwrap();
            // Stopped only for some tries of the attach.
            let continuing = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
            });
            let report =
                session.attach(victim.pid()).unwrap_or_else(|error| panic!("moment {moment}: {error}"));
            continuing.join().unwrap();
            assert_eq!(report.orphan_bytes_left, 0, "moment {moment}, stopped: {stops}");
            record_for(&mut session, 3);
            assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0, "moment {moment}");
            drop(session.stop());
            assert_eq!(remains(&victim), before, "moment {moment}, stopped: {stops}");
            victim.goes_on();
        }
        // Several deaths in each part of an attach and of a detach.
        assert!(death_count * stride > 60, "{death_count}");
    }
}

#[test]
fn killed_at_any_moment_it_leaves_the_program_running() {
    let mut victim = Victim::of("threads", &["4"]);
    for round in 0..12_u64 {
        let mut attacher = Command::new(std::env::current_exe().unwrap())
            .args(["failures::attaches_when_told_to", "--exact"])
            .env("HEAPR_TEST_ATTACH_TO", victim.pid().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(60_000 + round * 7_919 % 97 * 1_000));
        attacher.kill().unwrap();
        attacher.wait().unwrap();
        victim.goes_on();
    }
    // Remains of the killed processes do not hinder the next attach.
    let (mut session, _folder) = session();
    session.attach(victim.pid()).unwrap();
    record_for(&mut session, 100);
    assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
    victim.goes_on();
    assert!(session.stop().summary.event_count > 0);
}
