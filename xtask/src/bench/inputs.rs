//! Measured programs and their inputs; made once under the target directory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// Program of the table.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// Command that is run.
    pub(crate) command: Vec<String>,
    /// Additions to the environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// Client that makes the server work and, in the end, stops it in good order.
    pub(crate) client: Option<Client>,
}

/// Commands that make a server work.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Command that succeeds once the server listens.
    pub(crate) probe: Vec<String>,
    /// Command for the work, whose wall time counts.
    pub(crate) work: Vec<String>,
    /// Command that ends the server.
    pub(crate) stop: Vec<String>,
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Folder of inputs and results.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let folder = crate::check_agent::target_folder()?.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Returns all programs, built and with their inputs.
pub(crate) fn programs() -> anyhow::Result<Vec<Program>> {
    let folder = folder()?;
    let sources = crate::root().join("benches");
    let json = folder.join("records.json");
    if !json.exists() {
        std::fs::write(&json, records(12_000_000))?;
    }
    let source = |name: &str| sources.join(name).display().to_string();
    let plain =
        |name, command: Vec<String>| Program { name, command, environment: BTreeMap::new(), client: None };
    let filter =
        "[.[] | select(.id % 3 == 0) | .tags |= map(ascii_upcase)] | group_by(.group) | map(length) | add";
    let python = crate::output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let mut python = plain("python", vec![python.trim().into(), source("objects.py")]);
    python.environment.insert("PYTHONMALLOC".into(), "malloc".into());
    // The driver compiles without a fork: cc1 runs in the same process.
    let clang = words("clang++ -std=c++17 -O1 -c -o /dev/null");
    let stress = build_stress(&folder)?.display().to_string();
    Ok(vec![
        plain("jq", vec!["jq".into(), filter.into(), json.display().to_string()]),
        python,
        plain("clang++", [clang, vec![source("templates.cc")]].concat()),
        plain("node", vec!["node".into(), source("buffers.js")]),
        plain("stress", vec![stress, "1000000".into(), "2".into()]),
        redis(),
    ])
}

fn redis() -> Program {
    const PORT: &str = "29741";
    Program {
        name: "redis",
        command: words(&format!(
            "redis-server --port {PORT} --save  --appendonly no --daemonize no --dir /tmp"
        ))
        .into_iter()
        .collect(),
        environment: BTreeMap::new(),
        client: Some(Client {
            probe: words(&format!("redis-cli -p {PORT} ping")),
            work: words(&format!(
                "redis-benchmark -p {PORT} -q -n 300000 -r 100000 -P 16 -d 100 -t set,get,lpush,lpop,sadd,hset"
            )),
            stop: words(&format!("redis-cli -p {PORT} shutdown nosave")),
        }),
    }
}

/// Builds the stress program, optimised as programs are.
pub(crate) fn build_stress(folder: &Path) -> anyhow::Result<PathBuf> {
    let program = folder.join("stress");
    let source = crate::root().join("benches/stress.cc");
    crate::run(
        Command::new("g++").args(["-std=c++17", "-O2", "-g", "-pthread"]).arg(source).arg("-o").arg(&program),
    )?;
    Ok(program)
}

/// Returns a JSON array of records with at least this size, always the same.
fn records(size_bytes: usize) -> String {
    let mut text = String::from("[\n");
    let mut random = 1_u64;
    let mut id = 0;
    while text.len() < size_bytes {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let separator = if id == 0 { "" } else { ",\n" };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{separator}{{\"id\":{id},\"group\":\"g{}\",\"value\":{}.{},\"tags\":[\"a{}\",\"b{}\"],\"name\":\"name {:x}\"}}",
            random >> 60,
            random >> 40 & 0xffff,
            random >> 33 & 0xff,
            random >> 20 & 0xff,
            random >> 50 & 0xff,
            random
        );
        id += 1;
    }
    text.push_str("\n]\n");
    text
}
