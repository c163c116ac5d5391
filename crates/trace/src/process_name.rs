//! Names of processes: the name under which a process was started, if its command line has one.

use crate::model::Process;

impl Process {
    /// Name of the process for people: that of its executable, or of the link by which it was
    /// started. Examples are `redis-server`, a link to `redis-check-rdb`; `python3`; a command of
    /// busybox.
    #[must_use]
    pub fn name(&self) -> &str {
        let executable = file_name(&self.executable);
        match self.command_line.first() {
            Some(first) => started_as(first, &self.executable).unwrap_or(executable),
            None if executable.is_empty() => "?",
            None => executable,
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name in the first word of a command line. `None` where that word is something else: programs
/// write titles over it (`nginx: worker process`, `redis-server *:6379`).
fn started_as<'a>(first: &'a str, executable: &str) -> Option<&'a str> {
    if file_name(first) == file_name(executable) && !executable.is_empty() {
        return Some(file_name(first));
    }
    // A path may hold spaces, and a title begins with the name.
    let word = if first.contains(' ') { first.split(' ').next().unwrap_or_default() } else { first };
    let is_cut = word.len() < first.len();
    // Login shells have a dash before their names; titles often have a colon behind.
    let word = word.strip_prefix('-').unwrap_or(word).trim_end_matches(':');
    let (folder, name) = word.rsplit_once('/').unwrap_or(("", word));
    if is_cut && !folder.is_empty() && executable.rsplit_once('/').is_none_or(|(other, _)| other != folder) {
        return None;
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte) || !byte.is_ascii();
    let is_plain =
        name.bytes().all(is_name) && name.bytes().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    (is_plain && !name.starts_with('-')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessOrigin;

    fn name(executable: &str, command_line: &[&str]) -> String {
        let command_line = command_line.iter().map(|&word| word.to_owned()).collect();
        let process = Process {
            pid: 1,
            parent_pid: 0,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: executable.to_owned(),
            command_line,
            exit_status: None,
        };
        process.name().to_owned()
    }

    #[test]
    fn what_was_started_by_a_link_has_the_name_of_the_link() {
        assert_eq!(name("/usr/bin/redis-check-rdb", &["redis-server", "--port", "0"]), "redis-server");
        assert_eq!(name("/usr/bin/redis-check-rdb", &["/usr/bin/redis-server"]), "redis-server");
        assert_eq!(name("/usr/bin/python3.11", &["/venv/bin/python", "-m", "http.server"]), "python");
        assert_eq!(name("/usr/lib/llvm-14/bin/clang", &["clang++", "a.cc"]), "clang++");
        assert_eq!(name("/bin/busybox", &["ls"]), "ls");
        assert_eq!(name("/usr/bin/bash", &["-bash"]), "bash");
        assert_eq!(name("/usr/bin/bash", &["-sh"]), "sh");
    }

    #[test]
    fn a_title_is_no_name_but_may_begin_with_one() {
        assert_eq!(name("/usr/bin/redis-check-rdb", &["redis-server *:6379", "", ""]), "redis-server");
        assert_eq!(
            name("/usr/bin/redis-check-rdb", &["/usr/bin/redis-server 127.0.0.1:6379"]),
            "redis-server"
        );
        assert_eq!(name("/usr/sbin/nginx", &["nginx: worker process"]), "nginx");
        assert_eq!(name("/usr/bin/tool", &["--flag /a/b"]), "tool");
        assert_eq!(name("/usr/bin/tool", &["12345"]), "tool");
        assert_eq!(name("/usr/bin/tool", &["(working) now"]), "tool");
        assert_eq!(name("/usr/bin/tool", &[""]), "tool");
    }

    #[test]
    fn paths_with_spaces_and_what_is_missing() {
        assert_eq!(name("/opt/My App/app", &["/opt/My App/app"]), "app");
        assert_eq!(name("/opt/My App/app", &["/opt/My App/other"]), "app");
        assert_eq!(name("/opt/app (deleted)", &["./app"]), "app");
        assert_eq!(name("", &["/usr/bin/tool", "-x"]), "tool");
        assert_eq!(name("/usr/bin/tool", &[]), "tool");
        assert_eq!(name("", &[]), "?");
    }
}
