//! The user's browser.

use std::process::{Command, Stdio};

/// Opens an address in the user's browser; whether there was one to be asked.
pub(crate) fn open(url: &str) -> bool {
    // Over ssh the screen is elsewhere, and without a display there is none.
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
        return false;
    }
    let started = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return false };
    // It ends at once where it only tells a browser that runs already.
    std::thread::spawn(move || child.wait());
    true
}

/// What stands after `ssh` on another machine: user and host.
pub(crate) fn ssh_target() -> String {
    let user =
        std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "USER".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{user}@{}", if host.is_empty() { "HOST" } else { host })
}
