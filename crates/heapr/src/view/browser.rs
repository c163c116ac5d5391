//! Opens pages in the user's browser.
//!
//! A browser gets its address as an argument, which all users of the machine can read, and the
//! page's address contains a token. It is therefore given a file that only this user can read,
//! which redirects to the page.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_files::Existing;

/// Opens an address in the user's browser by a file in `folder`, which only this user can read.
/// Returns whether a browser could be started.
pub(crate) fn open(url: &str, folder: &Path) -> bool {
    // Over ssh the screen is on another machine; without a display there is no browser.
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
        return false;
    }
    let path = folder.join("open-heapr.html");
    // heapr makes the address of digits, letters and separators: no other one has to be escaped.
    let url = url.replace('&', "&amp;");
    let page = format!(
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\n\
         <meta http-equiv=refresh content=\"0; url={url}\">\n<title>heapr</title><a href=\"{url}\">heapr</a>\n"
    );
    let made = heapr_files::make(&path, Existing::Kept).and_then(|mut file| file.write_all(page.as_bytes()));
    if made.is_err() {
        return false;
    }
    let started = Command::new("xdg-open")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return false };
    // The child ends at once if it only notifies a running browser.
    std::thread::spawn(move || child.wait());
    true
}

/// Returns `USER@HOST` of this machine, for `ssh` on another one.
pub(crate) fn ssh_target() -> String {
    let user =
        std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "USER".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{user}@{}", if host.is_empty() { "HOST" } else { host })
}
