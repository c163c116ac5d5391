//! Finds the processes of a container on this machine by the container's id or the name of its pod.
//! Control groups and host names give the answer; no client of Docker or Kubernetes is needed.
//!
//! Runtimes name a container's control group after its id (`docker-<id>.scope`, `/docker/<id>`,
//! `cri-containerd-<id>.scope`, `crio-<id>.scope`, `libpod-<id>.scope`); its host name is that of
//! the pod.

use anyhow::bail;
use heapr_session::ProcessFacts;

/// Prefix of a target that is a container, as in `container:3f2a9c41b7d0`.
pub(crate) const PREFIX: &str = "container:";
/// Fewest characters of a container's id; a shorter beginning could match several.
const ID_CHARACTERS_MIN: usize = 4;

/// Returns the processes of a container or pod, ordered by pid.
///
/// # Errors
/// No process that this user may see belongs to the container or pod.
pub(crate) fn processes_of(name: &str) -> anyhow::Result<Vec<u32>> {
    let own = std::process::id();
    let mut found: Vec<u32> = ProcessFacts::of_all()
        .iter()
        .map(|facts| facts.pid)
        .filter(|&pid| pid != own && is_in(pid, name))
        .collect();
    if found.is_empty() {
        bail!(
            "no process that this user may look at is in a container or pod {name:?}: its id (from {ID_CHARACTERS_MIN} \
             characters on) or the pod's name is wanted, on the machine that runs it"
        );
    }
    found.sort_unstable();
    Ok(found)
}

fn is_in(pid: u32, name: &str) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    is_group_of(&groups, name) || is_elsewhere(pid) && host_names(pid).any(|host| host == name)
}

/// Whether the text of a `/proc/PID/cgroup` has a group of the container.
fn is_group_of(groups: &str, name: &str) -> bool {
    let is_id = name.len() >= ID_CHARACTERS_MIN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id
        && groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| {
            path.split('/').any(|part| {
                let part = part.strip_suffix(".scope").unwrap_or(part);
                let id = part.rsplit(['-', ':']).next().unwrap_or(part);
                id.len() == 64 && id.starts_with(name)
            })
        })
}

/// Whether the process has another mount namespace than heapr: processes of the machine itself
/// match by id only.
fn is_elsewhere(pid: u32) -> bool {
    let mounts = |pid: u32| heapr_proc::namespace(pid, "mnt");
    mounts(pid).is_some_and(|of_process| Some(of_process) != mounts(std::process::id()))
}

fn host_names(pid: u32) -> impl Iterator<Item = String> {
    let file = std::fs::read_to_string(format!("/proc/{pid}/root/etc/hostname")).ok();
    file.map(|text| text.trim().to_owned()).into_iter().chain(heapr_proc::variable(pid, "HOSTNAME"))
}

#[cfg(test)]
mod tests {
    use super::is_group_of;

    #[test]
    fn every_runtimes_groups_are_known() {
        let id = "3f2a9c41b7d0e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e";
        for group in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("12:memory:/docker/{id}\n1:name=systemd:/docker/{id}"),
            format!("0::/kubepods.slice/kubepods-burstable-podab_cd.slice/cri-containerd-{id}.scope"),
            format!("0::/kubepods/besteffort/pod12ab/{id}/inner"),
            format!("0::/kubepods.slice/pod.slice/crio-{id}.scope"),
            format!("0::/user.slice/user-1000.slice/libpod-{id}.scope/container"),
            format!("0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{id}"),
            format!("0::/../{id}"),
        ] {
            assert!(is_group_of(&group, &id[..12]) && is_group_of(&group, id), "{group}");
            assert!(!is_group_of(&group, "3f3") && !is_group_of(&group, "9c41b7d0"), "{group}");
        }
        assert!(!is_group_of("0::/user.slice/abcd1234.scope", "abcd"));
        assert!(!is_group_of("", "abcd"));
    }
}
