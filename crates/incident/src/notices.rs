//! Notices of the kernel about a control group, as descriptors for poll(2).
//!
//! | version | descriptor | tells |
//! |---|---|---|
//! | 1 | event counters by `cgroup.event_control` | out of memory, usage that crosses a threshold, pressure |
//! | 2 | inotify on `memory.events` | limit hit, out of memory, kill |
//! | 2 | `memory.pressure` | tasks that waited for memory |

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_proc::GroupFolder;
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::inotify;

/// Descriptors with notices of one group.
#[derive(Debug, Default)]
pub struct Notices {
    descriptors: Vec<(OwnedFd, PollFlags)>,
    instances: Vec<Instance>,
    /// Notices that the kernel refused, with the reason.
    pub refused: Vec<String>,
}

/// Largest number of inotify instances for watched groups. The kernel allows a user 128 by default,
/// and root's other programs need them, too.
const OWN_MAX: usize = 48;
/// Number of instances from which on groups above a watched one get no further ones.
const ABOVE_MAX: usize = 24;
static INSTANCES: AtomicUsize = AtomicUsize::new(0);

/// Inotify instance that is counted.
#[derive(Debug)]
struct Instance;

impl Instance {
    fn taken(most: usize) -> io::Result<Self> {
        let taken = Self;
        match INSTANCES.fetch_add(1, Relaxed) {
            before if before < most => Ok(taken),
            _ => Err(io::Error::other("as many groups as heapr asks notices of have them")),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        INSTANCES.fetch_sub(1, Relaxed);
    }
}

/// Request of a notice of pressure: 150 ms of waiting within 2 s. Shorter windows need a privilege.
const PRESSURE: &[u8] = b"some 150000 2000000\0";

impl Notices {
    /// Asks for all notices of a group. `thresholds`: bytes of usage (version 1).
    #[must_use]
    pub fn of(group: &GroupFolder, thresholds: &[u64]) -> Self {
        let mut notices = Self::default();
        if group.is_v2() {
            notices.add_changes(group, OWN_MAX);
            // A kernel without pressure information has no such file.
            if group.folder().join("memory.pressure").exists() {
                notices.add(PollFlags::PRI, "memory.pressure", pressure(group));
            }
            return notices;
        }
        notices.add(PollFlags::IN, "memory.oom_control", counter(group, "memory.oom_control", ""));
        for bytes in thresholds {
            let made = counter(group, "memory.usage_in_bytes", &bytes.to_string());
            notices.add(PollFlags::IN, "memory.usage_in_bytes", made);
        }
        notices.add(
            PollFlags::IN,
            "memory.pressure_level",
            counter(group, "memory.pressure_level", "medium"),
        );
        notices
    }

    /// Asks only for notices of memory that ran out, for a group above a watched one.
    #[must_use]
    pub fn of_kills(group: &GroupFolder) -> Self {
        let mut notices = Self::default();
        if group.is_v2() {
            notices.add_changes(group, ABOVE_MAX);
        } else {
            notices.add(PollFlags::IN, "memory.oom_control", counter(group, "memory.oom_control", ""));
        }
        notices
    }

    /// Asks for notices of changes of version 2's events. `most`: number of inotify instances from
    /// which on it is refused.
    fn add_changes(&mut self, group: &GroupFolder, most: usize) {
        let made = Instance::taken(most).and_then(|instance| {
            let made = changes(group, "memory.events")?;
            self.instances.push(instance);
            Ok(made)
        });
        self.add(PollFlags::IN, "memory.events", made);
    }

    fn add(&mut self, flags: PollFlags, file: &str, made: io::Result<OwnedFd>) {
        match made {
            Ok(descriptor) => self.descriptors.push((descriptor, flags)),
            Err(error) => self.refused.push(format!("{file}: {error}")),
        }
    }

    /// Descriptors, with the events to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.descriptors.iter().map(|(descriptor, flags)| (descriptor.as_fd(), *flags))
    }

    /// Takes the notices that have come, so that the descriptors become quiet again.
    pub fn take(&self) {
        let mut bytes = [0_u8; 4096];
        for (descriptor, flags) in &self.descriptors {
            // Pressure has no contents to be read.
            if flags.contains(PollFlags::IN) {
                while rustix::io::read(descriptor, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
            }
        }
    }
}

/// Counter that version 1 raises for a file of the group.
fn counter(group: &GroupFolder, file: &str, argument: &str) -> io::Result<OwnedFd> {
    let folder = group.folder();
    let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let watched = File::open(folder.join(file))?;
    let mut control = OpenOptions::new().write(true).open(folder.join("cgroup.event_control"))?;
    let line = format!("{} {} {argument}", counter.as_raw_fd(), watched.as_raw_fd());
    control.write_all(line.trim_end().as_bytes())?;
    Ok(counter)
}

/// Descriptor that tells changes of a file of version 2.
fn changes(group: &GroupFolder, file: &str) -> io::Result<OwnedFd> {
    let descriptor = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&descriptor, group.folder().join(file), inotify::WatchFlags::MODIFY)?;
    Ok(descriptor)
}

fn pressure(group: &GroupFolder) -> io::Result<OwnedFd> {
    let mut file = OpenOptions::new().read(true).write(true).open(group.folder().join("memory.pressure"))?;
    file.write_all(PRESSURE)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, Timespec, poll};

    use super::*;

    fn has_notice(notices: &Notices) -> bool {
        let mut polled: Vec<PollFd<'_>> =
            notices.descriptors().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    #[test]
    fn a_change_of_the_events_of_version_2_is_a_notice_until_it_is_taken() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("web")).unwrap();
        let events = top.path().join("web/memory.events");
        std::fs::write(&events, "oom 0\n").unwrap();
        let notices = Notices::of(&GroupFolder::copied(top.path(), "web", true), &[1]);
        assert!(notices.refused.is_empty() && !has_notice(&notices));
        std::fs::write(&events, "oom 1\n").unwrap();
        assert!(has_notice(&notices));
        notices.take();
        assert!(!has_notice(&notices));
    }

    #[test]
    fn a_group_that_is_gone_refuses_each_notice_with_its_reason() {
        let top = tempfile::tempdir().unwrap();
        let gone = |is_v2| Notices::of(&GroupFolder::copied(top.path(), "gone", is_v2), &[1]).refused.len();
        assert_eq!([gone(true), gone(false)], [1, 3]);
    }
}
