//! `heapr push` and `heapr serve`: the profiles that arrive equal the reports.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heapr_trace::Amounts;
use serde_json::Value;

use crate::engine::{Engine, Taken};
use crate::stage::Stage;

/// heaptrack file with 3 blocks of 16 bytes, one of which is freed.
pub(crate) const RECORDED: &str = "v 10200 2\nX ./service\ns /bin/service\ns main\ns grow\ns main.c\ni 10 1 2 4 5\ni 20 1 3 4 9\nt 1 0\nt 2 1\n\
                        a 10 2\n+ 0\n+ 0\n- 0\n+ 0\nc a\n";

/// Returns the totals of a pprof profile.
fn amounts(pprof: &[u8]) -> Amounts {
    let trace = heapr_import::from_bytes(pprof).unwrap();
    trace.summary_totals().unwrap().unwrap().totals.amounts()
}

fn told(amounts: &Amounts) -> [u64; 4] {
    [amounts.outstanding_bytes, amounts.outstanding_count, amounts.total_bytes, amounts.total_count]
}

fn pprof_of(taken: &Taken, samples: &str) -> Vec<u8> {
    let body: Value = serde_json::from_slice(&taken.body).unwrap();
    STANDARD.decode(body.pointer(samples).unwrap().as_str().unwrap()).unwrap()
}

fn label(labels: &Value, name: &str) -> String {
    let labels = labels.as_array().unwrap();
    let found = labels.iter().find(|label| label["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    found["value"].as_str().unwrap().to_owned()
}

#[test]
fn a_file_reaches_each_engine_in_its_form() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    // The first answer says that the server is busy, so that the push is retried.
    let engine = Engine::start(&[503]);
    let url = engine.url.as_str();
    stage
        .heapr(&[
            "push",
            "recorded",
            "--pyroscope",
            url,
            "--parca",
            url,
            "--otlp",
            url,
            "--label",
            "version=7",
            "--header",
            "X-Scope-OrgID: 3",
        ])
        .ok();
    let taken = engine.taken();
    let paths: Vec<(&str, u16)> = taken.iter().map(|taken| (taken.path.as_str(), taken.status)).collect();
    assert_eq!(
        paths,
        [
            ("/push.v1.PusherService/Push", 503),
            ("/push.v1.PusherService/Push", 200),
            ("/api/profiles/writeraw", 200),
            ("/v1development/profiles", 200),
        ]
    );
    assert!(taken.iter().all(|taken| taken.has_header("X-Scope-OrgID: 3")));
    assert!(taken[0].has_header("Content-Type: application/json"));
    assert_eq!(taken[0].body, taken[1].body);
    let report = stage.json(&["report", "recorded", "--totals"]);
    let totals = &report["totals"];
    let expected = ["outstanding_bytes", "outstanding_count", "alloc_bytes", "alloc_count"]
        .map(|name| totals[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}")));
    assert_eq!(expected, [32, 2, 48, 3]);
    assert_eq!(told(&amounts(&pprof_of(&taken[1], "/series/0/samples/0/rawProfile"))), expected);
    assert_eq!(told(&amounts(&pprof_of(&taken[2], "/series/0/samples/0/rawProfile"))), expected);
    let pyroscope: Value = serde_json::from_slice(&taken[1].body).unwrap();
    let parca: Value = serde_json::from_slice(&taken[2].body).unwrap();
    for labels in [&pyroscope["series"][0]["labels"], &parca["series"][0]["labels"]["labels"]] {
        assert_eq!(label(labels, "__name__"), "memory");
        assert_eq!(label(labels, "service_name"), "service");
        assert_eq!(label(labels, "version"), "7");
    }
    assert!(taken[3].has_header("Content-Type: application/x-protobuf"));
    assert!(taken[3].has_header("Content-Encoding: gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&taken[3].body[..]).read_to_end(&mut plain).unwrap();
    assert!(plain.windows(11).any(|window| window == b"inuse_space"));
}

#[test]
fn what_is_refused_is_told_and_not_tried_again() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    let engine = Engine::start(&[400]);
    stage
        .heapr(&["push", "recorded", "--otlp", &engine.url])
        .fails_with(&["answers 400: told so", "dropped"]);
    assert_eq!(engine.taken().len(), 1);
    stage.heapr(&["push", "recorded"]).fails_with(&["--pyroscope URL, --parca URL, --otlp URL"]);
}

/// The engine is unreachable at first. Later it gets the spooled profiles in order, and their
/// allocations add up.
#[test]
fn a_session_is_sent_until_it_ends_and_nothing_is_lost() {
    let stage = Stage::new();
    stage.start_steady("web", &["-o", "web.heapr"]).ok();
    stage.wait_for("web", "the first events", |status| status["event_count"].as_u64() > Some(1000));
    // Port without a listener yet.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}");
    let spool = stage.argument("spool");
    let words = [
        "push",
        "--session",
        "web",
        "--pyroscope",
        &url,
        "--every",
        "200ms",
        "--tries",
        "1",
        "--spool",
        &spool,
    ];
    let mut pushing = stage.command(&words).stderr(Stdio::null()).spawn().unwrap();
    let waiting = || std::fs::read_dir(stage.path("spool")).map_or(0, Iterator::count);
    heapr_testkit::wait_until("two profiles wait", || (waiting() >= 2).then_some(()));
    let engine = Engine::listen(std::net::TcpListener::bind(address).unwrap(), &[]);
    heapr_testkit::wait_until("they have arrived", || (engine.taken().len() >= 3).then_some(()));
    stage.release();
    stage.wait_for("web", "the program's end", |status| status["live_process_count"] == 0);
    stage.heapr(&["stop", "web"]).ok();
    let status = heapr_testkit::wait_until("push ends with the session", || pushing.try_wait().unwrap());
    assert!(status.success());
    assert_eq!(waiting(), 0);
    let report = stage.json(&["report", "web.heapr", "--totals"]);
    let sent: Vec<Amounts> = engine
        .taken()
        .iter()
        .map(|taken| amounts(&pprof_of(taken, "/series/0/samples/0/rawProfile")))
        .collect();
    let allocated = sent.iter().map(|amounts| amounts.total_bytes).sum::<u64>();
    assert_eq!(report["totals"]["alloc_bytes"], allocated, "{report}");
    assert_eq!(report["totals"]["outstanding_bytes"], sent.last().unwrap().outstanding_bytes);
}

#[test]
fn the_pprof_of_go_reads_a_recording_by_its_address() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    let mut serving =
        stage.command(&["serve", "recorded"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim().to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/debug/pprof/heap"), "{url}");
    let asked = |tail: &str, host: &str| {
        let address = url.split('/').nth(2).unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let host = if host.is_empty() { address } else { host };
        let request = format!("GET {tail} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&answer[9..12]).into_owned(), answer.split_off(end + 4))
    };
    let (status, body) = asked("/debug/pprof/heap?gc=1&seconds=1", "");
    assert_eq!((status.as_str(), told(&amounts(&body))), ("200", [32, 2, 48, 3]));
    assert_eq!(asked("/debug/pprof/allocs", "").0, "200");
    assert_eq!(asked("/debug/pprof/", "").0, "200");
    assert_eq!(asked("/debug/pprof/profile", "").0, "404");
    assert_eq!(asked("/debug/pprof/heap?debug=1", "").0, "400");
    assert_eq!(asked("/debug/pprof/heap", "evil.example").0, "421");
    let go = Command::new("go")
        .args(["tool", "pprof", "-top", "-unit=b", &url])
        .env("PPROF_TMPDIR", stage.path("pprof"))
        .stdin(Stdio::null())
        .output();
    match go {
        Ok(go) => {
            let said = String::from_utf8_lossy(&go.stdout).into_owned();
            assert!(said.contains("Type: inuse_space") && said.contains("grow"), "{said}");
            assert!(said.contains("100% of 32B total") || said.contains("100% of 32 total"), "{said}");
        }
        Err(_) => heapr_testkit::not_run("go is not installed"),
    }
    serving.kill().unwrap();
    serving.wait().unwrap();
}

/// Tables of the command line; the tests of `heapr-export` check their contents.
#[test]
fn tables_go_into_folders_and_replace_nothing_unasked() {
    let stage = Stage::new();
    std::fs::write(stage.path("recorded"), RECORDED).unwrap();
    let words = ["export", "recorded", "--to", "parquet", "-o", "tables", "--host", "a b", "--label", "k=v"];
    stage.heapr(&words).ok();
    for table in ["processes", "frames", "stacks", "samples", "mappings", "resident"] {
        let file = stage.path(&format!("tables/{table}/date=1970-01-01/a_b-0-recorded.parquet"));
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
    stage.heapr(&words).fails_with(&["exists"]);
    stage.heapr(&[&words[..], &["-f"]].concat()).ok();
    stage.heapr(&["export", "recorded", "--to", "parquet"]).fails_with(&["-o DIR"]);
    stage.heapr(&[&words[..], &["--range", "0", "1ms", "-f"]].concat()).fails_with(&["leave out --range"]);
}
