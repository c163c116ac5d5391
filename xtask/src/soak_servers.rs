//! Servers in the languages whose frames are read, each under the load of a client that checks all
//! answers. They are attached to and let go again and again.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Names of the servers.
pub(crate) const SERVERS: [&str; 5] = ["gunicorn", "uvicorn", "puma", "php-fpm", "java"];

/// Server with the command of its client.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// Process that does the work.
    pub(crate) pid: u32,
    pub(crate) client: Command,
}

/// Starts a server.
pub(crate) fn start(name: &str, port: u32) -> anyhow::Result<Server> {
    let benches = crate::root().join("benches");
    let address = format!("127.0.0.1:{port}");
    let folder = std::env::temp_dir().join("heapr-soak-servers");
    std::fs::create_dir_all(&folder)?;
    // The interpreter itself, because a script that searches for it would exec it later.
    let python = crate::output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let python = python.trim();
    let mut is_worker_a_child = false;
    let (mut command, kind) = match name {
        "gunicorn" => {
            is_worker_a_child = true;
            let mut command = Command::new(python);
            command.args(["-m", "gunicorn", "-w", "1", "-k", "gthread", "--threads", "4"]);
            command.args(["--log-level", "error", "-b", &address, "soak_app:wsgi"]);
            (command, "http")
        }
        "uvicorn" => {
            let mut command = Command::new(python);
            command.args(["-m", "uvicorn", "--log-level", "error", "--port", &port.to_string()]);
            command.arg("soak_app:asgi");
            (command, "http")
        }
        "puma" => {
            let mut command = Command::new("puma");
            command.args(["-q", "-t", "4:4", "-b", &format!("tcp://{address}"), "soak_app.ru"]);
            (command, "http")
        }
        "php-fpm" => {
            is_worker_a_child = true;
            let configuration = folder.join("php-fpm.conf");
            let text = format!(
                "[global]\nerror_log = /dev/stderr\nlog_level = error\n[www]\nlisten = {address}\npm = static\n\
                 pm.max_children = 1\nuser = root\ngroup = root\nclear_env = no\n"
            );
            std::fs::write(&configuration, text)?;
            let mut command = Command::new(php_fpm()?);
            // With this variable small blocks come from malloc.
            command.args(["-F", "-n", "-R", "-y"]).arg(&configuration).env("USE_ZEND_ALLOC", "0");
            (command, "fastcgi")
        }
        _ => {
            let source = benches.join("SoakServer.java");
            crate::run(Command::new("javac").arg("-d").arg(&folder).arg(source))?;
            let mut command = Command::new("java");
            command.args(["-Xmx256m", "-cp"]).arg(&folder).args(["SoakServer", &port.to_string()]);
            (command, "lines")
        }
    };
    command.current_dir(&benches).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let child = command.spawn().with_context(|| name.to_owned())?;
    let pid = if is_worker_a_child { worker(child.id())? } else { child.id() };
    let mut client = Command::new(python);
    client.arg(benches.join("soak_client.py")).args([kind, &port.to_string()]);
    client.arg(benches.join("soak_app.php"));
    Ok(Server { child, pid, client })
}

/// Returns the single worker of a server, once it exists.
fn worker(server: u32) -> anyhow::Result<u32> {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        match only_child(server) {
            Ok(pid) => return Ok(pid),
            Err(error) if Instant::now() > limit => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Returns the installed php-fpm, whose name contains the version.
fn php_fpm() -> anyhow::Result<String> {
    let script = "ls /usr/sbin/php-fpm* /usr/bin/php-fpm* 2>/dev/null | head -1";
    let first = crate::output_of(Command::new("sh").args(["-c", script]))?;
    ensure!(!first.trim().is_empty(), "php-fpm is not installed");
    Ok(first.trim().to_owned())
}

/// Returns the process that another has started.
pub(crate) fn only_child(pid: u32) -> anyhow::Result<u32> {
    let children = crate::output_of(Command::new("pgrep").args(["-P", &pid.to_string()]))?;
    let child = children.split_ascii_whitespace().next().context("the wrapper has started nothing")?;
    Ok(child.parse()?)
}
