//! Requests by the machine's own `curl`, because heapr has no TLS built in.
//!
//! All options go through curl's standard input as a configuration, so that lists of processes show
//! neither addresses nor secrets. Bodies are files; those in memory have no name.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;

use super::answer::Answer;
use super::plain::SHOWN_BYTES;

const CONNECT_LIMIT_S: u32 = 5;
/// Longest time of a request, in seconds: files of tables have some megabytes.
const LIMIT_S: u32 = 300;

/// Request that curl sends.
#[derive(Debug)]
pub(super) struct Request {
    configuration: String,
    /// Kept open for the child, which reads it by its number.
    body: Option<io::Result<File>>,
}

impl Request {
    fn new(url: &str, headers: &[(String, String)], authority: Option<&Path>) -> Self {
        let mut request = Self { configuration: String::new(), body: None };
        request.set("url", url);
        request.set("user-agent", concat!("heapr/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request.set("header", &format!("{name}: {value}"));
        }
        if let Some(authority) = authority {
            request.set("cacert", &authority.to_string_lossy());
        }
        let _ = writeln!(
            request.configuration,
            // Waiting for `100 Continue` is of no use; an empty header would be signed.
            "silent\nshow-error\nexpect100-timeout = 0.01\nconnect-timeout = {CONNECT_LIMIT_S}\nmax-time = {LIMIT_S}\n\
             write-out = \"\\n%{{http_code}}\""
        );
        request
    }

    /// Makes a POST of a body in memory.
    pub(super) fn post(
        url: &str,
        headers: &[(String, String)],
        body: &[u8],
        authority: Option<&Path>,
    ) -> Self {
        let mut request = Self::new(url, headers, authority);
        // The child inherits this descriptor on purpose.
        let file = rustix::fs::memfd_create(c"heapr-push", MemfdFlags::empty());
        let file = file.map_err(io::Error::from).and_then(|file| {
            let mut file = File::from(file);
            file.write_all(body)?;
            Ok(file)
        });
        if let Ok(file) = &file {
            request.set("data-binary", &format!("@/proc/self/fd/{}", file.as_raw_fd()));
        }
        request.body = Some(file);
        request
    }

    /// Makes a PUT of a file.
    pub(super) fn put(
        url: &str,
        headers: &[(String, String)],
        file: &Path,
        authority: Option<&Path>,
    ) -> Self {
        let mut request = Self::new(url, headers, authority);
        request.set("upload-file", &file.to_string_lossy());
        request
    }

    /// Signs the request by Amazon's signature version 4.
    pub(super) fn signed(mut self, region: &str, key: &str, secret: &str) -> Self {
        self.set("aws-sigv4", &format!("aws:amz:{region}:s3"));
        self.set("user", &format!("{key}:{secret}"));
        self
    }

    fn set(&mut self, option: &str, value: &str) {
        let mut quoted = String::with_capacity(value.len());
        for c in value.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                // Control characters belong neither into a header nor into an address.
                c if c.is_control() => {}
                c => quoted.push(c),
            }
        }
        let _ = writeln!(self.configuration, "{option} = \"{quoted}\"");
    }

    /// Sends the request.
    pub(super) fn run(self) -> Answer {
        let _body = self.body.transpose()?;
        // `-q`: ignore the user's configuration of curl.
        let mut command = Command::new("curl");
        command.args(["-q", "--config", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(
                io::ErrorKind::Unsupported,
                "https needs the program curl, which is not installed: install it, or send to a proxy or \
                 collector on this host (http://127.0.0.1:…)",
            ),
            _ => error,
        })?;
        if let Some(mut input) = child.stdin.take() {
            // curl may end before it has read everything; its exit code says why.
            let _ = input.write_all(self.configuration.as_bytes());
        }
        let done = child.wait_with_output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(failure(done.status.code(), said.lines().next().unwrap_or("it says nothing")));
        }
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let (text, status) = said.rsplit_once('\n').unwrap_or(("", &said));
        let status = status.trim().parse().map_err(|_| io::Error::other("curl does not say what came"))?;
        let mut shown = Vec::new();
        text.as_bytes().take(SHOWN_BYTES).read_to_end(&mut shown)?;
        Ok((status, String::from_utf8_lossy(&shown).trim().to_owned()))
    }
}

/// Converts curl's exit code without an answer into an error.
fn failure(code: Option<i32>, said: &str) -> io::Error {
    /// Exit codes for an unknown option, or for a curl built without TLS.
    const USAGE: [i32; 3] = [1, 2, 4];
    /// Exit code for a certificate that is not trusted.
    const CERTIFICATE: i32 = 60;
    let (kind, advice) = match code {
        Some(code) if USAGE.contains(&code) => {
            (io::ErrorKind::Unsupported, ": a newer one is needed (7.75 for object stores)")
        }
        Some(CERTIFICATE) => (
            io::ErrorKind::Other,
            ": name who is to be trusted (--ca FILE); a certificate of another name, or one that ended, is the \
             server's to mend",
        ),
        _ => (io::ErrorKind::Other, ""),
    };
    io::Error::new(kind, format!("{said}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_to_curl_stays_within_its_quotes() {
        let headers = [("X".to_owned(), "a\" \\ \nurl = \"http://evil\"".to_owned())];
        let request = Request::put("https://a/b", &headers, Path::new("/f"), None).signed("r", "k", "s\"t");
        let lines: Vec<&str> = request.configuration.lines().collect();
        assert_eq!(lines[0], "url = \"https://a/b\"");
        assert_eq!(lines[2], r#"header = "X: a\" \\ url = \"http://evil\"""#);
        assert!(lines.contains(&r#"user = "k:s\"t""#) && lines.contains(&"aws-sigv4 = \"aws:amz:r:s3\""));
        assert_eq!(lines.iter().filter(|line| line.starts_with("url")).count(), 1);
    }
}
