//! The user's browser.
//!
//! What starts it gets the address as an argument, which all users of the machine can read, and the
//! address has the token in it. So it gets a file that only this user can read, which leads there.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_files::Existing;

/// Opens an address in the user's browser, by a file in `folder`, which is this user's alone;
/// whether there was one to be asked.
pub(crate) fn open(url: &str, folder: &Path) -> bool {
    // Over ssh the screen is elsewhere, and without a display there is none.
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
        return false;
    }
    let path = folder.join("open-heapr.html");
    // (The address is of heapr's own making: digits, letters, and what stands between them.)
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
