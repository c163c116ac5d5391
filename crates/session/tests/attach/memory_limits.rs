//! Test of a program in a control group with little memory left: the kernel kills a process that
//! allocates more there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_session::{Error, Session, SessionProperties};

use crate::victim::{Victim, build};

/// Control group with a memory limit, of the version that the machine has.
struct LimitedGroup {
    folder: PathBuf,
    limit: &'static str,
}

impl LimitedGroup {
    fn new() -> Option<Self> {
        let name = format!("heapr-test-attach-{}", std::process::id());
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        places.into_iter().find_map(|(root, limit)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir_all(&folder).ok()?;
            let group = Self { folder, limit };
            let is_group = group.folder.join("cgroup.procs").exists();
            // If it cannot be limited, the group is dropped, and so removed again.
            (is_group && group.set_limit(1 << 30).is_ok()).then_some(group)
        })
    }

    fn set_limit(&self, bytes: u64) -> std::io::Result<()> {
        fs::write(self.folder.join(self.limit), bytes.to_string())
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_process_near_its_limit_of_memory_is_refused_with_the_figure_and_lives() {
    let Some(group) = LimitedGroup::new() else {
        return heapr_testkit::cannot_run_here("no control group can limit memory");
    };
    let mut command = Command::new("sh");
    let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\"", group.folder.display());
    command.args(["-c", &script]).arg(build("counted", &[]));
    let mut victim = Victim::start(command);
    let works = |victim: &mut Victim| {
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
    };

    let folder = tempfile::tempdir().unwrap();
    let mut properties = SessionProperties::new(folder.path().join("trace.heapr"));
    // All buffers have memory from the start, far more than the group may have; the recorder is
    // charged for it.
    properties.min_buffers = properties.max_buffers;
    let mut session = Session::start(properties).unwrap();

    let limit_bytes = 3 << 20;
    group.set_limit(limit_bytes).unwrap();
    let error = session.attach(victim.pid()).unwrap_err();
    let Error::NoRoom { needed_kib, left_kib, ref of } = error else { panic!("{error:?}") };
    assert!(left_kib <= limit_bytes >> 10 && limit_bytes >> 10 < needed_kib, "{error}");
    assert!(of.contains(&group.folder.display().to_string()), "{error}");
    assert!(error.to_string().contains(&needed_kib.to_string()), "{error}");
    works(&mut victim);

    group.set_limit(16 << 20).unwrap();
    session.attach(victim.pid()).unwrap();
    works(&mut victim);
    session.detach(victim.pid()).unwrap();
    works(&mut victim);
    assert!(session.stop().summary.event_count > 1000);
}
