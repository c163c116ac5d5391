//! Programs with seccomp filters: an attach never makes a filter kill the program.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use heapr_session::{Error, InjectError};

use crate::victim::{Victim, build};
use crate::{record_for, session};

const KILL: &str = "0x80000000";
/// Signal, which kills a program without a handler for it.
const TRAP: &str = "0x00030000";
/// EPERM.
const REFUSE: &str = "0x00050001";
/// Strict mode: a thread may only read, write and exit.
const STRICT: &str = "0";
const MMAP: &str = "9";
const SOCKETPAIR: &str = "53";
const SYMLINK: &str = "88";
const OPENAT: &str = "257";
const FUTEX: &str = "202";
const CLOCK_GETTIME: &str = "228";
const MUNMAP: &str = "11";

/// Whether filters can be read: only by root, and only outside of containers that have a filter
/// themselves.
fn can_read_filters() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_filtered = status.lines().any(|line| line.starts_with("Seccomp:") && !line.ends_with('0'));
    rustix::process::geteuid().is_root() && !is_filtered
}

fn lives_on(victim: &mut Victim) {
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
}

#[test]
fn a_filter_that_would_end_the_program_is_found_before_anything_is_done() {
    if !can_read_filters() {
        return;
    }
    // The attach itself would call the first, the agent the second, in any of the threads.
    for (who, answer, call, name) in [
        ("main", KILL, SOCKETPAIR, "socketpair"),
        ("thread", KILL, OPENAT, "openat"),
        ("main", TRAP, OPENAT, "openat"),
        ("thread", STRICT, MMAP, "mmap"),
    ] {
        let mut victim = Victim::of("filtered", &[who, answer, call]);
        let (mut session, _folder) = session();
        let error = session.attach(victim.pid()).unwrap_err();
        assert!(
            matches!(error, Error::Inject { source: InjectError::SeccompForbids { call, .. } } if call == name),
            "{error}"
        );
        lives_on(&mut victim);
        drop(session.stop());
    }
}

#[test]
fn a_filter_that_answers_with_an_error_is_no_harm() {
    let mut victim = Victim::of("filtered", &["main", REFUSE, SOCKETPAIR]);
    let (mut session, _folder) = session();
    let error = session.attach(victim.pid()).unwrap_err();
    if can_read_filters() {
        let is_of_it =
            matches!(error, Error::Inject { source: InjectError::RemoteCall { call: "socketpair", .. } });
        assert!(is_of_it, "{error}");
    }
    lives_on(&mut victim);
    drop(session.stop());
}

#[test]
fn a_filter_of_other_calls_is_in_nobodys_way() {
    if !can_read_filters() {
        return;
    }
    let mut victim = Victim::of("filtered", &["thread", KILL, SYMLINK]);
    let (mut session, _folder) = session();
    let before = session.attach(victim.pid()).unwrap().blocks_before;
    lives_on(&mut victim);
    record_for(&mut session, 100);
    assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
    lives_on(&mut victim);
    let stopped = session.stop();
    assert_eq!(stopped.summary.event_count, 2000 + before);
}

#[test]
fn a_filter_that_came_later_does_not_end_the_program_at_the_detach() {
    if !can_read_filters() {
        return;
    }
    let mut victim = Victim::of("filtered", &["later", KILL, MUNMAP]);
    let (mut session, folder) = session();
    session.attach(victim.pid()).unwrap();
    lives_on(&mut victim);
    record_for(&mut session, 100);
    let report = session.detach(victim.pid()).unwrap();
    assert!(report.bytes_left > 0 && report.hooks_removed > 0, "{report:?}");
    lives_on(&mut victim);
    drop(session.stop());
    // The file tells what stays in the program.
    let trace = heapr_trace::Trace::open(&folder.path().join("trace.heapr")).unwrap();
    let texts: Vec<_> = trace.notices().iter().map(|notice| notice.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("of heapr's agent mapped, without use")), "{texts:?}");
}

#[test]
fn a_filter_that_comes_later_does_not_end_the_program_for_what_the_agent_does() {
    if !can_read_filters() {
        return;
    }
    for (answer, call) in [(KILL, MMAP), (KILL, FUTEX), (KILL, CLOCK_GETTIME), (TRAP, OPENAT), (STRICT, MMAP)]
    {
        let mut victim = Victim::of("filtered", &["later", answer, call]);
        let (mut session, folder) = session();
        session.attach(victim.pid()).unwrap();
        for _ in 0..20 {
            lives_on(&mut victim);
        }
        // The agent's state is checked ten times a second.
        record_for(&mut session, 200);
        let stopped = session.stop();
        let trace = heapr_trace::Trace::open(&folder.path().join("trace.heapr")).unwrap();
        assert_eq!(trace.notices().len(), usize::from(answer == STRICT), "{answer} {call}");
        // Without memory for its state a thread only counts its events.
        let known_count = stopped.summary.event_count + stopped.statistics.loss.events_lost;
        assert!(answer == STRICT || known_count >= 40_000, "{answer} {call}: {known_count}");
        lives_on(&mut victim);
    }
}

#[test]
fn filters_that_cannot_be_read_are_refused_unless_told_otherwise() {
    if !can_read_filters() {
        return;
    }
    let program = build("filtered", &[]);
    // The build folder may be closed to others.
    let folder = tempfile::Builder::new().prefix("heapr-filters").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (copy, own) = (folder.path().join("filtered"), folder.path().join("test"));
    std::fs::copy(program, &copy).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let mut command = Command::new(copy);
    command.args(["main", KILL, SYMLINK]).uid(65534).gid(65534);
    let mut victim = Victim::start(command);
    // Runs one of these tests as the other user.
    let outcome = Command::new(own)
        .args(["filters::is_refused_as_its_user", "--exact", "--nocapture"])
        .env("HEAPR_TEST_FILTERED", victim.pid().to_string())
        .env("TMPDIR", "/tmp")
        .env("XDG_CACHE_HOME", folder.path())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    lives_on(&mut victim);
}

/// Part of another test, run as another user; alone it does nothing.
#[test]
fn is_refused_as_its_user() {
    let Ok(pid) = std::env::var("HEAPR_TEST_FILTERED") else { return };
    let pid = pid.parse().unwrap();
    let (mut session, folder) = session();
    let error = session.attach(pid).unwrap_err();
    // If only children may be traced, nothing can be tested.
    if matches!(error, Error::Inject { source: InjectError::NotPermitted { .. } }) {
        return;
    }
    let is_of_it = matches!(error, Error::Inject { source: InjectError::SeccompUnreadable { .. } });
    assert!(is_of_it, "{error}");
    drop(session.stop());
    let mut properties = heapr_session::SessionProperties::new(folder.path().join("despite.heapr"));
    properties.max_buffers = 48;
    properties.despite_seccomp = true;
    let mut session = heapr_session::Session::start(properties).unwrap();
    session.attach(pid).unwrap();
    session.detach(pid).unwrap();
    drop(session.stop());
}
