//! Reason why the kernel denies access to a process although its user does not forbid it.

use heapr_proc::Fields;

/// Capability `CAP_SYS_PTRACE`.
const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Returns the reason from the status files of heapr and of the process. Returns `None` if the user
/// alone explains the denial.
pub(super) fn reason(own_status: &Fields, status: &Fields) -> Option<String> {
    let effective_user = |status: &Fields| status.words("Uid").nth(1)?.parse::<u32>().ok();
    let capabilities = |status: &Fields, name: &str| status.bits(name).unwrap_or(0);
    let (own_user, user) = (effective_user(own_status)?, effective_user(status)?);
    if own_user != 0 && own_user != user {
        return None;
    }
    let although = if own_user == 0 { "heapr runs as root" } else { "it is a process of the same user" };
    let missing = capabilities(status, "CapPrm") & !capabilities(own_status, "CapPrm");
    let cause = if capabilities(own_status, "CapEff") & CAP_SYS_PTRACE == 0 && (own_user == 0 || missing != 0)
    {
        "heapr has not the capability SYS_PTRACE here (docker run --cap-add SYS_PTRACE gives it to a container)".to_owned()
    } else if missing != 0 {
        format!(
            "the process has capabilities that heapr lacks (mask {missing:#x}), as one has that was started outside of heapr's container"
        )
    } else {
        "a security module or another user namespace forbids it, or the program made itself unreadable"
            .to_owned()
    };
    Some(format!("although {although}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(user: u32, effective: u64, permitted: u64) -> Fields {
        let ids = format!("Name:\tx\nUid:\t7\t{user}\t7\t7\n");
        let capabilities = format!("CapPrm:\t{permitted:016x}\nCapEff:\t{effective:016x}\n");
        Fields::parse((ids + &capabilities).as_bytes())
    }

    #[test]
    fn another_user_is_the_whole_explanation() {
        assert_eq!(reason(&status(1000, 0, 0), &status(0, !0, !0)), None);
        assert_eq!(reason(&Fields::default(), &Fields::default()), None);
    }

    #[test]
    fn root_without_the_capability_is_told_which_one() {
        let all = (1 << 41) - 1;
        let told = |own, other| reason(&status(0, own, own), &status(0, other, other)).unwrap();
        assert!(told(all & !CAP_SYS_PTRACE, all).contains("SYS_PTRACE"));
        assert!(told(all & !(1 << 24), all).contains("mask 0x1000000"));
        assert!(told(all, all).contains("security module"));
        assert!(reason(&status(7, 0, 0), &status(7, 0, 0)).unwrap().contains("same user"));
    }
}
