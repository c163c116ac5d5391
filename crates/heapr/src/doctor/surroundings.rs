//! Checks of what sessions and reports need around them: directories, disk space, symbols, Node.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::check::Check;

/// Runs all checks of the surroundings.
pub(super) fn checks() -> Vec<Check> {
    vec![runtime_directory(), room(), symbol_cache(), debug_files(), node()]
}

/// Checks the runtime directory as a session would choose it.
fn runtime_directory() -> Check {
    let topic = "runtime directory";
    let variable = ["HEAPR_RUNTIME_DIR", "XDG_RUNTIME_DIR"]
        .into_iter()
        .find(|name| std::env::var_os(name).is_some())
        .unwrap_or("XDG_RUNTIME_DIR");
    let asked = std::env::var_os(variable).map(PathBuf::from);
    let advice = format!("{variable} should be a directory of this user with mode 0700, or not be set");
    match (heapr_session::sessions_directory(), asked) {
        (Ok(path), Some(asked)) if !path.starts_with(&asked) => Check::limited(
            topic,
            format!("{}, because {variable}={} cannot be used", path.display(), asked.display()),
            advice,
        ),
        (Ok(path), _) => Check::ok(topic, path.display().to_string()),
        (Err(error), _) => Check::no(topic, error.to_string(), format!("{advice}; heapr run works without")),
    }
}

fn room() -> Check {
    /// Free bytes that are enough: an hour of a busy server's events.
    const COMFORTABLE_BYTES: u64 = 1 << 30;
    let topic = "room for traces";
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    match rustix::fs::statvfs(&here) {
        Ok(facts) => {
            let free_bytes = facts.f_bavail.saturating_mul(facts.f_frsize);
            let found = format!("{} MiB free in {}", free_bytes >> 20, here.display());
            if free_bytes >= COMFORTABLE_BYTES {
                Check::ok(topic, found)
            } else {
                Check::limited(topic, found, "write traces elsewhere with -o FILE, or bound them")
            }
        }
        Err(error) => Check::limited(
            topic,
            format!("{}: {error}", here.display()),
            "write traces elsewhere with -o FILE",
        ),
    }
}

fn symbol_cache() -> Check {
    let topic = "cache directory";
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let Some(base) = base else {
        return Check::limited(
            topic,
            "neither XDG_CACHE_HOME nor HOME is set",
            "set HOME; without it nothing is kept between reports",
        );
    };
    let existing = base.ancestors().find(|path| path.is_dir());
    let is_writable =
        existing.is_some_and(|path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok());
    if is_writable {
        Check::ok(topic, base.display().to_string())
    } else {
        Check::limited(
            topic,
            format!("{} cannot be written", base.display()),
            "set XDG_CACHE_HOME to a directory of this user",
        )
    }
}

fn debug_files() -> Check {
    let topic = "debug files";
    let servers = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
    let has_local = fs::metadata("/usr/lib/debug/.build-id").is_ok();
    let found = match (has_local, servers.split_whitespace().count()) {
        (true, 0) => "/usr/lib/debug".to_owned(),
        (true, count) => format!("/usr/lib/debug, {count} debuginfod server(s) named"),
        (false, 0) => "none installed, DEBUGINFOD_URLS is not set".to_owned(),
        (false, count) => format!("none installed, {count} debuginfod server(s) named"),
    };
    if has_local {
        return Check::ok(topic, found);
    }
    Check::limited(
        topic,
        found,
        "install the -dbgsym packages of what you profile to see functions of stripped libraries",
    )
}

fn node() -> Check {
    let topic = "Node";
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Check::ok(topic, format!("{}, snapshots over its inspector", version.trim()))
        }
        _ => Check::limited(
            topic,
            "no node in PATH",
            "only needed to start Node programs; running ones are found without",
        ),
    }
}
