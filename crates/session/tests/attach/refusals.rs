//! Tests of processes that cannot be attached to, and of the error messages.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use heapr_session::{Error, InjectError};

use crate::session;
use crate::victim::{Victim, build};

fn refusal(pid: u32) -> InjectError {
    let (mut session, _folder) = session();
    match session.attach(pid) {
        Err(Error::Inject { source }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_such_process() {
    assert!(matches!(refusal(0x3f_fff0), InjectError::NoSuchProcess { .. }));
}

#[test]
fn a_zombie() {
    let mut child = Command::new("true").spawn().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    heapr_testkit::wait_until("it is a zombie", || state().contains(") Z").then_some(()));
    assert!(matches!(refusal(child.id()), InjectError::Zombie { .. }));
    child.wait().unwrap();
}

#[test]
fn a_static_program_without_names() {
    for flag in ["-static", "-static-pie"] {
        let victim = Victim::start(Command::new(build("counted", &[flag, "-s"])));
        let error = refusal(victim.pid());
        assert!(error.to_string().contains("linked statically"), "{flag}: {error}");
    }
}

#[test]
fn this_process_itself() {
    assert!(matches!(refusal(std::process::id()), InjectError::Unsupported { .. }));
}

#[test]
fn a_thread_of_the_kernel() {
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        assert!(matches!(refusal(2), InjectError::Unsupported { .. } | InjectError::NotPermitted { .. }));
    }
}

#[test]
fn one_that_is_recorded_already() {
    let mut victim = Victim::of("counted", &[]);
    let (mut first, _folder) = session();
    first.attach(victim.pid()).unwrap();
    let pid = victim.pid();
    // The recorder owns the process as long as it lives, whatever else it is doing.
    std::thread::sleep(Duration::from_millis(500));
    let error = refusal(pid);
    assert!(matches!(error, InjectError::AlreadyAttached { .. }), "{error}");
    first.detach(victim.pid()).unwrap();
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
}

#[test]
fn one_that_a_debugger_traces() {
    let mut tracer = Command::new("strace");
    tracer.args(["-o", "/dev/null", "-e", "trace=none"]).arg(build("counted", &[]));
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let victim = Victim::start(tracer);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", victim.pid())).unwrap();
    let pid: u32 = children.split_ascii_whitespace().next().unwrap().parse().unwrap();
    let error = refusal(pid);
    assert!(error.to_string().contains("traced by strace"), "{error}");
}

#[test]
fn another_users_process() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let victim = Victim::of("counted", &[]);
    // Runs one of these tests as another user (`nobody`, 65534).
    let outcome = Command::new(std::env::current_exe().unwrap())
        .args(["refusals::is_refused_as_another_user", "--exact"])
        .env("HEAPR_TEST_REFUSED", victim.pid().to_string())
        .env("TMPDIR", "/tmp")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output();
    // If that user may not run the test's file, nothing can be tested.
    if let Ok(outcome) = outcome {
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    }
}

/// Part of another test, run as another user; alone it does nothing.
#[test]
fn is_refused_as_another_user() {
    let Ok(pid) = std::env::var("HEAPR_TEST_REFUSED") else { return };
    let error = refusal(pid.parse().unwrap());
    assert!(matches!(error, InjectError::NotPermitted { .. }), "{error}");
    assert!(error.to_string().contains("sudo"), "{error}");
}

#[test]
fn nothing_to_detach() {
    let victim = Victim::of("counted", &[]);
    let (mut session, _folder) = session();
    let error = session.detach(victim.pid()).unwrap_err();
    assert!(matches!(error, Error::Inject { source: InjectError::NotAttached { .. } }), "{error}");
}
