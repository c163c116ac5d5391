//! What is left when an attach fails at some step, or its process is killed.

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
    // One step for each hook, and those before.
    assert!(step as usize > report.hooks.len() + 8, "{step}");
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    session.detach(victim.pid()).unwrap();
    drop(session.stop());
}

/// Not a test of its own: the process that is killed in the next one.
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
    // What those left is no hindrance.
    let (mut session, _folder) = session();
    session.attach(victim.pid()).unwrap();
    record_for(&mut session, 100);
    assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
    victim.goes_on();
    assert!(session.stop().summary.event_count > 0);
}
