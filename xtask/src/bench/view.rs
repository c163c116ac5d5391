//! Measures `heapr view`: the server (from its start to the first picture, all panels for ranges
//! and filters), and a page in headless Chromium.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::inputs;
use super::table::markdown;

/// Longest wait for an answer, even for the first one on 100 million events.
const PATIENCE: Duration = Duration::from_secs(300);
/// Ranges that are brushed, in hundredths of the time.
const RANGES: [(u64, u64); 5] = [(0, 100), (10, 60), (40, 45), (90, 100), (25, 75)];

/// Server that is killed when this is dropped.
pub(super) struct Viewing {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Viewing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Viewing {
    fn start(heapr: &str, file: &Path) -> anyhow::Result<Self> {
        Self::start_as(Command::new(heapr), file)
    }

    /// Starts the server by a command that accepts its arguments.
    pub(super) fn start_as(mut heapr: Command, file: &Path) -> anyhow::Result<Self> {
        let mut child = heapr
            .args(["view", "--no-open", "--port", "0"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("heapr view")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("http://").context("no address was printed")?;
        let (address, token) = url.split_once("/?token=").context("no token was printed")?;
        Ok(Self { address: address.to_owned(), token: token.to_owned(), child })
    }

    /// Ends the server by SIGINT, as a user does, and waits for it.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        crate::run(Command::new("kill").args(["-INT", &self.child.id().to_string()]))?;
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > PATIENCE {
                bail!("the server has not ended");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(super) fn ask(&self, name: &str, body: &Value) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.to_string();
        write!(
            stream,
            "POST /api/{name} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("no answer")?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            bail!("{name} {body}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(serde_json::from_slice(&answer[end + 4..])?)
    }

    /// Requests all panels at once, as a page does. Returns the milliseconds until the last answer.
    fn panels(&self, filter: &Value, time_ns: (u64, u64)) -> anyhow::Result<f64> {
        let base = json!({"file": 0, "filter": filter});
        let with = |more: Value| {
            let mut body = base.clone();
            if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
                body.extend(more.clone());
            }
            body
        };
        let requests = [
            ("timeline", with(json!({"by": "image", "from_ns": time_ns.0, "to_ns": time_ns.1}))),
            ("flame", with(json!({}))),
            ("report", with(json!({"by": "stacks", "limit": 100}))),
            ("histograms", with(json!({}))),
            ("types", with(json!({}))),
        ];
        let start = Instant::now();
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                requests.iter().map(|(name, body)| scope.spawn(move || self.ask(name, body))).collect();
            asked.into_iter().try_for_each(|asked| match asked.join() {
                Ok(answer) => answer.map(|_| ()),
                Err(_) => bail!("a request's thread has panicked"),
            })
        })?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }
}

/// Additional measurements beside the server on the programs' traces.
pub(crate) struct Options {
    /// True to measure a trace of 100 million events and a V8 snapshot of 1 GB, too.
    is_large: bool,
    /// True to measure the page in a browser, too, which takes most of the time.
    has_page: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self { is_large: false, has_page: true };
        for word in words {
            match *word {
                "large" => options.is_large = true,
                "server" => options.has_page = false,
                _ => bail!("{}", crate::USAGE),
            }
        }
        Ok(options)
    }
}

/// Measures and returns the tables. `HEAPR` names a binary to use instead of a build.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let heapr = super::measured_heapr()?;
    let folder = inputs::folder()?;
    let mut rows = Vec::new();
    let mut page_words: Vec<String> = Vec::new();
    let mut programs: Vec<(String, inputs::Program)> = inputs::programs()?
        .into_iter()
        .filter(|program| ["clang++", "stress", "python"].contains(&program.name))
        .map(|program| (program.name.to_owned(), program))
        .collect();
    if options.is_large
        && let Some((_, stress)) = programs.iter().find(|(name, _)| name == "stress").cloned()
    {
        let mut large = stress;
        large.command[1] = "25000000".to_owned();
        programs.push(("stress, 100 M".to_owned(), large));
    }
    for (name, program) in programs {
        let trace = folder.join(format!("view-{}.heapr", name.replace([' ', ','], "")));
        let mut command = Command::new(&heapr);
        command.args(["run", "--quiet", "-f", "-o"]).arg(&trace).arg("--").args(&program.command);
        crate::run(command.envs(&program.environment).stdout(Stdio::null()))?;
        // The first report fills the cache of symbols.
        crate::run(Command::new(&heapr).arg("report").arg(&trace).stdout(Stdio::null()))?;
        rows.push(measure(&heapr, &trace, &name)?);
        page_words.extend(["--trace".to_owned(), trace.display().to_string()]);
    }
    if options.is_large && options.has_page {
        let (snapshot, _) = super::snapshots::large()?;
        page_words.extend(["--snapshot".to_owned(), snapshot]);
    }
    let page = if options.has_page { page(&heapr, &page_words)? } else { String::new() };
    let heading =
        ["trace", "events", "flame graph ms", "timeline ms", "all panels, median ms", "worst ms", "peak MiB"];
    Ok(format!(
        "## View, the server's part\n\nFrom the start of `heapr view` to its first flame graph and to its timeline; then five panels at once for each of \
         {} ranges, with and without a lifetime filter.\n\n{}",
        RANGES.len(),
        markdown(&heading, &rows)
    ) + &page)
}

/// Measures a page by `ui/e2e/bench.mjs`.
fn page(heapr: &str, words: &[String]) -> anyhow::Result<String> {
    let ui = crate::root().join("ui");
    if !ui.join("node_modules").is_dir() {
        crate::run(
            Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&ui),
        )?;
    }
    let output = Command::new("node")
        .arg("e2e/bench.mjs")
        .args(words)
        .current_dir(&ui)
        .env("HEAPR", heapr)
        .stderr(Stdio::inherit())
        .output()
        .context("node e2e/bench.mjs")?;
    if !output.status.success() {
        bail!("node e2e/bench.mjs ended with {}", output.status);
    }
    let mut rows = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let measure: Value = serde_json::from_str(line).with_context(|| format!("of the page: {line}"))?;
        let text = |name: &str| measure[name].as_str().unwrap_or_default().to_owned();
        let number =
            |name: &str| measure[name].as_f64().map_or_else(String::new, |number| number.to_string());
        rows.push(vec![text("what"), text("of"), number("value"), text("unit"), number("must")]);
    }
    Ok(format!(
        "\n## View, the page in headless Chromium\n\n{}",
        markdown(&["measure", "of", "value", "unit", "must"], &rows)
    ))
}

fn measure(heapr: &str, trace: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    let start = Instant::now();
    let viewing = Viewing::start(heapr, trace)?;
    viewing.ask("flame", &json!({"file": 0}))?;
    let flame_ms = start.elapsed().as_secs_f64() * 1e3;
    let timeline = viewing.ask("timeline", &json!({"file": 0}))?;
    let timeline_ms = start.elapsed().as_secs_f64() * 1e3;
    let duration_ns = timeline["to_ns"].as_u64().context("to_ns")?;
    let mut panels_ms = Vec::new();
    for (from, to) in RANGES {
        let (from, to) = (duration_ns / 100 * from, duration_ns / 100 * to);
        let range = [format!("{from}ns"), format!("{to}ns")];
        for filter in [json!({"range": range}), json!({"range": range, "lifetime": ["0", "1ms"]})] {
            panels_ms.push(viewing.panels(&filter, (from, to))?);
        }
    }
    panels_ms.sort_by(f64::total_cmp);
    let report = viewing.ask("report", &json!({"file": 0, "limit": 1}))?;
    let totals = &report["totals"];
    let events = totals["alloc_count"].as_u64().unwrap_or(0) + totals["free_count"].as_u64().unwrap_or(0);
    Ok(vec![
        name.to_owned(),
        events.to_string(),
        format!("{flame_ms:.0}"),
        format!("{timeline_ms:.0}"),
        format!("{:.0}", panels_ms[panels_ms.len() / 2]),
        format!("{:.0}", panels_ms[panels_ms.len() - 1]),
        format!("{:.0}", viewing.resident_mib()?),
    ])
}
