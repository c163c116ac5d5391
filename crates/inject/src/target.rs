//! Facts about a target from /proc before it is touched, and refusal of unsuitable targets.

use std::fs;
use std::time::{Duration, Instant};

use heapr_known::machine::HERE;
use heapr_proc::{Fields, Stat, machine};

use crate::arch::has_shadow_stack;
use crate::error::{Error, Result};

/// Ids of the threads of a process.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>> {
    Ok(heapr_proc::threads(pid).map_err(|_| Error::NoSuchProcess { pid })?.collect())
}

/// True if a thread has ended or is gone.
pub(crate) fn has_ended(pid: u32, tid: u32) -> bool {
    Stat::of_thread(pid, tid).is_none_or(|stat| stat.has_ended())
}

/// Id of the thread that traces a thread, as far as known.
pub(crate) fn tracer(pid: u32, tid: u32) -> Option<u32> {
    Fields::of_thread(pid, tid)?.number("TracerPid")
}

/// Seccomp mode of a thread (0: off, 1: strict, 2: filters) and number of its filters (0 before
/// Linux 5.9); `None` if it is gone.
pub(crate) fn seccomp(pid: u32, tid: u32) -> Option<(u32, u32)> {
    let status = Fields::of_thread(pid, tid)?;
    let number = |name| status.number(name).unwrap_or(0);
    Some((number("Seccomp"), number("Seccomp_filters")))
}

/// True if a thread belongs to this process.
pub(crate) fn is_own_thread(tid: u32) -> bool {
    fs::metadata(format!("/proc/self/task/{tid}")).is_ok()
}

/// Refuses a process that cannot be attached to, with the reason. `is_held`: this process is its
/// tracer.
pub(crate) fn check(pid: u32, is_held: bool) -> Result<()> {
    /// Longest wait for a thread of this process, which has traced the target, to end.
    const ENDS_WITHIN: Duration = Duration::from_millis(200);
    let begin = Instant::now();
    let (status, tracer_pid) = loop {
        let status = Fields::of_process(pid).map_err(|_| Error::NoSuchProcess { pid })?;
        let tracer_pid = status.number("TracerPid").unwrap_or(0);
        if is_held || !is_own_thread(tracer_pid) || begin.elapsed() > ENDS_WITHIN {
            break (status, tracer_pid);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if status.text("State").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return Err(Error::Zombie { pid });
    }
    // The kernel reports the id of the tracing thread.
    if tracer_pid != 0 && !(is_held && is_own_thread(tracer_pid)) {
        let tracer_name = heapr_proc::thread_name(tracer_pid, tracer_pid).unwrap_or_default();
        return Err(Error::AlreadyTraced { pid, tracer_pid, tracer_name });
    }
    let unsupported = |reason| Err(Error::Unsupported { pid, reason });
    if pid == std::process::id() {
        return unsupported("it is heapr itself");
    }
    let mut head = [0; 20];
    let executable = heapr_proc::folder(pid).join("exe");
    match fs::File::open(&executable) {
        Ok(mut file) => std::io::Read::read_exact(&mut file, &mut head).unwrap_or_default(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(Error::NotPermitted { pid, reason: why_not_permitted(pid, &status) });
        }
        Err(_) if fs::read_link(&executable).is_err() => {
            return unsupported("it is a thread of the kernel");
        }
        Err(_) => {}
    }
    if let Some(reason) = unsuited_program(&head) {
        return unsupported(reason);
    }
    if has_shadow_stack(pid, &status) {
        return unsupported("it runs with a shadow stack (start it without, in GLIBC_TUNABLES)");
    }
    if status.number("Seccomp") == Some(1) {
        return unsupported("it has forbidden itself all system calls (seccomp in strict mode)");
    }
    Ok(())
}

/// Reason against a program whose file begins with these bytes; `None` for one of this processor.
fn unsuited_program(head: &[u8; 20]) -> Option<&'static str> {
    if head.starts_with(b"\x7fELF\x01") {
        return Some("it is a 32-bit program");
    }
    let is_other = head.starts_with(b"\x7fELF") && head[18..] != HERE.elf_number.to_le_bytes();
    is_other.then_some("it is a program for another processor")
}

/// Error for a refusal by the kernel, with the setting, capability or user that causes it.
pub(crate) fn not_permitted(pid: u32) -> Error {
    match Fields::of_process(pid) {
        Err(_) => Error::NoSuchProcess { pid },
        Ok(status) => Error::NotPermitted { pid, reason: why_not_permitted(pid, &status) },
    }
}

fn why_not_permitted(pid: u32, status: &Fields) -> String {
    const CAP_SYS_PTRACE: u32 = 19;
    let own = Fields::of_self();
    let capabilities = own.bits("CapEff").unwrap_or(0);
    // A filter can refuse ptrace by itself; which calls it refuses is not to be read.
    let has_filter = own.number("Seccomp") == Some(2);
    if capabilities >> CAP_SYS_PTRACE & 1 != 0 {
        if has_filter {
            return "although this process has CAP_SYS_PTRACE: its seccomp filter forbids ptrace (a container's can be \
                    changed: --security-opt seccomp=…), or a security module or another user namespace does"
                .to_owned();
        }
        return "although this process has CAP_SYS_PTRACE: a security module, or another user namespace, forbids it"
            .to_owned();
    }
    let name = status.text("Name").unwrap_or_default();
    let uid_of = |status: &Fields| status.words("Uid").next().unwrap_or("?").to_owned();
    let (uid, own_uid) = (uid_of(status), uid_of(&own));
    if uid != own_uid {
        return format!(
            "{name} runs as user {uid}, this is user {own_uid}: use sudo, or run heapr as that user"
        );
    }
    match machine::ptrace_scope().as_str() {
        "1" => format!(
            "kernel.yama.ptrace_scope is 1, which allows only children to be traced: use sudo, or sysctl kernel.yama.ptrace_scope=0, or start {name} with heapr run"
        ),
        "2" => "kernel.yama.ptrace_scope is 2, which allows it to CAP_SYS_PTRACE only: use sudo".to_owned(),
        "3" => "kernel.yama.ptrace_scope is 3, which forbids all tracing until the next boot".to_owned(),
        _ if has_filter => format!(
            "the seccomp filter of this process forbids ptrace (of a container: --cap-add SYS_PTRACE allows it), or process {pid} has made itself untraceable"
        ),
        _ => format!(
            "process {pid} has made itself untraceable (prctl PR_SET_DUMPABLE, or a program with capabilities): use sudo"
        ),
    }
}

#[cfg(test)]
mod tests {
    use heapr_known::machine::of_elf;

    use super::*;

    /// First bytes of a program: 1 for 32 bits, 2 for 64; the processor's number.
    fn head(bits: u8, elf_number: u16) -> [u8; 20] {
        let mut head = [0; 20];
        head[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', bits, 1, 1]);
        head[18..].copy_from_slice(&elf_number.to_le_bytes());
        head
    }

    #[test]
    fn a_program_of_another_processor_or_of_32_bits_is_refused() {
        const ARM: u16 = 40;
        const I386: u16 = 3;
        const RISC_V: u16 = 243;
        assert_eq!(unsuited_program(&head(2, HERE.elf_number)), None);
        for number in [ARM, I386] {
            assert_eq!(unsuited_program(&head(1, number)), Some("it is a 32-bit program"));
        }
        for number in [183, 62, RISC_V].into_iter().filter(|&number| number != HERE.elf_number) {
            let reason = unsuited_program(&head(2, number));
            assert_eq!(reason, Some("it is a program for another processor"), "{:?}", of_elf(number));
        }
        // Not a program: the kernel starts scripts by another one.
        assert_eq!(unsuited_program(&[b'#'; 20]), None);
    }
}
