//! `heapr push` and `heapr export --to parquet` over TLS, to a server with its own certificate that
//! checks the requests' signatures (`store.py`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::sending::RECORDED;
use crate::stage::Stage;

struct Store {
    server: Child,
    url: String,
    certificate: String,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Store {
    /// Starts the server; `None` if a tool is missing.
    fn start(stage: &Stage) -> Option<Self> {
        Self::start_named(stage, "IP:127.0.0.1")
    }

    /// Starts a server with a certificate for that name.
    fn start_named(stage: &Stage, name: &str) -> Option<Self> {
        let (certificate, key) = (stage.argument("certificate.pem"), stage.argument("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=store"])
            .args(["-addext", &format!("subjectAltName={name}"), "-keyout", &key, "-out", &certificate])
            .output();
        let has_curl = Command::new("curl").arg("--version").output().is_ok();
        if !has_curl || !made.is_ok_and(|made| made.status.success()) {
            heapr_testkit::not_run("there is no curl, or no openssl");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/store.py");
        let mut server = Command::new("python3")
            .arg(script)
            .args([&stage.argument("store"), &certificate, &key])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::fs::create_dir(stage.path("store")).unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("https://127.0.0.1:{}", port.trim());
        Some(Self { server, url, certificate })
    }
}

#[test]
fn a_profile_reaches_an_engine_that_asks_for_tls() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    std::fs::write(stage.path("headers"), "Authorization: Bearer a\"b\\c\nX-Scope-OrgID: 3\n").unwrap();
    let Some(store) = Store::start(&stage) else { return };
    let push = |more: &[&str]| {
        stage.heapr(&[&["push", "recorded", "--pyroscope", &store.url, "--tries", "1"], more].concat())
    };
    push(&["--ca", &store.certificate, "--header", "@headers"]).ok();
    let posts = std::fs::read_to_string(stage.path("store/posts")).unwrap();
    let post: Value = serde_json::from_str(posts.trim()).unwrap();
    assert_eq!(post["path"], "/push.v1.PusherService/Push");
    assert_eq!(post["headers"]["Authorization"], "Bearer a\"b\\c");
    assert_eq!(post["headers"]["X-Scope-OrgID"], "3");
    let body = STANDARD.decode(post["body"].as_str().unwrap()).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert!(body["series"][0]["samples"][0]["rawProfile"].is_string(), "{body}");
    // The push fails without trust, and without curl.
    push(&[]).fails_with(&["certificate", "--ca FILE", "not all of it is with its engine"]);
    let mut command = stage.command(&["push", "recorded", "--pyroscope", &store.url]);
    command.env("PATH", "/nowhere");
    heapr_testkit::run(&mut command).fails_with(&["https needs the program curl", "install it"]);
}

/// Returns all files below a folder by their relative paths.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    found
}

#[test]
fn tables_reach_object_stores_signed_or_with_a_token_and_replace_nothing_unasked() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    let Some(store) = Store::start(&stage) else { return };
    let export = |secret: &str, more: &[&str]| {
        let words = ["export", "recorded", "--to", "parquet", "--host", "h", "--ca", &store.certificate];
        let mut command = stage.command(&[&words, more].concat());
        command.env("AWS_ENDPOINT_URL_S3", &store.url).env("AWS_REGION", "eu-central-1");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", secret);
        heapr_testkit::run(&mut command)
    };
    let secret = "the secret/of+this test";
    export(secret, &["-o", "here"]).ok();
    export(secret, &["-o", "s3://heaps/day one"]).ok();
    let here = files(&stage.path("here"));
    assert_eq!(here.len(), 6, "{:?}", here.keys());
    assert_eq!(here, files(&stage.path("store/objects/heaps/day one")));
    export(secret, &["-o", "s3://heaps/day one"]).fails_with(&["is there already", "--force"]);
    export(secret, &["-o", "s3://heaps/day one", "-f"]).ok();
    export("another", &["-o", "s3://heaps/other"]).fails_with(&["answers 403", "SignatureDoesNotMatch"]);
    // Google's store: with a token, and a condition of its own.
    let export = |token: &str, more: &[&str]| {
        let words = ["export", "recorded", "--to", "parquet", "--host", "h", "--ca", &store.certificate];
        let mut command = stage.command(&[&words, more].concat());
        command.env("STORAGE_EMULATOR_HOST", &store.url).env("GOOGLE_OAUTH_ACCESS_TOKEN", token);
        heapr_testkit::run(&mut command)
    };
    export("ya29.of-this_test", &["-o", "gs://fleet/day two"]).ok();
    assert_eq!(here, files(&stage.path("store/objects/fleet/day two")));
    export("ya29.of-this_test", &["-o", "gs://fleet/day two"]).fails_with(&["is there already", "--force"]);
    export("ya29.of-this_test", &["-o", "gs://fleet/day two", "-f"]).ok();
    export("another", &["-o", "gs://fleet/other"]).fails_with(&["answers 401", "Invalid Credentials"]);
}

#[test]
fn a_redirect_is_told_and_followed_by_no_token() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    std::fs::write(stage.path("headers"), "Authorization: Bearer secret\n").unwrap();
    let Some(store) = Store::start(&stage) else { return };
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let address = format!("http://{}", elsewhere.local_addr().unwrap());
    std::fs::write(stage.path("store/moved"), &address).unwrap();
    let words = ["push", "recorded", "--pyroscope", &store.url, "--ca", &store.certificate];
    let refused = ["answers 307", "redirects are not followed"];
    stage.heapr(&[&words[..], &["--header", "@headers"]].concat()).fails_with(&refused);
    let words = ["export", "recorded", "--to", "parquet", "--host", "h", "--ca", &store.certificate];
    let mut command = stage.command(&[&words[..], &["-o", "s3://heaps/day"]].concat());
    command.env("AWS_ENDPOINT_URL_S3", &store.url).env("AWS_REGION", "eu-central-1");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "the secret/of+this test");
    heapr_testkit::run(&mut command).fails_with(&refused);
    assert!(elsewhere.accept().is_err(), "nobody was asked elsewhere");
    assert!(!stage.path("store/posts").exists());
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    let Some(store) = Store::start_named(&stage, "IP:127.0.0.2") else { return };
    let words = ["push", "recorded", "--pyroscope", &store.url, "--tries", "1", "--ca", &store.certificate];
    stage.heapr(&words).fails_with(&["certificate of another name", "not all of it is with its engine"]);
    assert!(!stage.path("store/posts").exists());
}
