//! Thread that asks the server's follower of a session, as the page does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use heapr_filters::FilterArguments;
use heapr_server::{Files, answer_json};
use heapr_session::SessionName;
use serde_json::{Value, json};

use super::reading::{Reading, first_finding};
use super::recorder_share::RecorderMeter;
use super::snapshot;
use super::stack_view::StackView;

/// Number of readings at the begin, each of which is judged.
const YOUNG_READINGS: u32 = 3;
/// Interval between two judgements.
const FINDINGS_EVERY: Duration = Duration::from_secs(5);
/// Largest number of functions of a reading.
const ROWS_MAX: usize = 2_000;
/// Time that the curve covers at most, ns.
const CURVE_NS: u64 = 300_000_000_000;
/// Interval at which a file that is being opened is asked for.
const OPENING: Duration = Duration::from_millis(50);
/// Number of points of the curve.
const CURVE_POINTS: usize = 300;
/// Number of source lines before and behind a frame's line.
const SOURCE_LINES: u32 = 2;

/// Question that the table answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) filter: FilterArguments,
    /// Frame that answers for a stack: `own` or `innermost`.
    pub(super) of: &'static str,
    /// Key by which the server chooses the functions that are listed.
    pub(super) sort: &'static str,
}

/// Order to the reader.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few are sent in a second")]
pub(super) enum Order {
    /// Answers this question from here on.
    Query(Query),
    /// Reads a stack.
    Stack(String),
    /// Takes a snapshot of these processes; of a single one with its graph.
    Snapshot(Vec<u32>),
}

/// News for the view.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few are sent in a second")]
pub(super) enum News {
    /// Reading, and the question that it answers.
    Reading(Query, Box<Reading>),
    Stack(StackView),
    /// Snapshot that was taken, in words.
    Snapshot(String),
    SnapshotFailed(String),
    /// Failure of a reading, in words.
    Trouble(String),
}

/// Handle of the thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    orders: Sender<Order>,
    pub(super) news: Receiver<News>,
}

impl Reader {
    /// Starts the thread for a session, given with its recorder's process id.
    pub(super) fn start(
        files: Arc<Files>,
        session: (SessionName, u32),
        interval: Duration,
        query: Query,
    ) -> Self {
        let (orders, received) = channel();
        let (sender, news) = channel();
        let mut work = Work {
            files,
            session,
            news: sender,
            query,
            meter: RecorderMeter::default(),
            finding: None,
            judged: None,
            readings: 0,
        };
        std::thread::spawn(move || work.run(&received, interval));
        Self { orders, news }
    }

    /// Gives an order; a reader that has ended has told why.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

/// Reason for which there is no reading.
#[derive(Debug)]
enum NoReading {
    /// The file is being opened.
    NotYet,
    Because(String),
}

struct Work {
    files: Arc<Files>,
    /// Session, and its recorder's process id.
    session: (SessionName, u32),
    news: Sender<News>,
    query: Query,
    meter: RecorderMeter,
    finding: Option<String>,
    /// Time of the last judgement.
    judged: Option<Instant>,
    /// Number of readings.
    readings: u32,
}

impl Work {
    fn run(&mut self, orders: &Receiver<Order>, interval: Duration) {
        let mut next = Instant::now();
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            match orders.recv_timeout(wait) {
                Ok(Order::Query(query)) => {
                    self.query = query;
                    next = Instant::now();
                    continue;
                }
                Ok(Order::Stack(id)) => {
                    let news = match self.stack(&id) {
                        Ok(view) => News::Stack(view),
                        Err(NoReading::Because(trouble)) => News::Trouble(trouble),
                        // The next key asks again.
                        Err(NoReading::NotYet) => continue,
                    };
                    if self.news.send(news).is_err() {
                        return;
                    }
                    continue;
                }
                Ok(Order::Snapshot(pids)) => {
                    self.snapshot(pids);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            next = Instant::now() + interval;
            let news = match self.reading() {
                Ok(reading) => News::Reading(self.query.clone(), Box::new(reading)),
                Err(NoReading::NotYet) => {
                    next = Instant::now() + interval.min(OPENING);
                    continue;
                }
                Err(NoReading::Because(trouble)) => News::Trouble(trouble),
            };
            if self.news.send(news).is_err() {
                return;
            }
        }
    }

    fn ask(&self, name: &str, body: &Value) -> Result<Value, NoReading> {
        let answer = answer_json(&self.files, name, body.to_string().as_bytes());
        let answer = answer.map_err(|error| match error {
            heapr_server::Error::Opening { .. } => NoReading::NotYet,
            error => NoReading::Because(error.to_string()),
        })?;
        serde_json::from_slice(&answer)
            .map_err(|error| NoReading::Because(format!("the answer to {name} makes no sense: {error}")))
    }

    /// The filter as requests have it.
    fn filter(&self) -> Result<Value, NoReading> {
        serde_json::to_value(&self.query.filter).map_err(|error| NoReading::Because(error.to_string()))
    }

    fn reading(&mut self) -> Result<Reading, NoReading> {
        let mut reading = Reading::default();
        let status = self.ask("session/status", &json!({"file": 0}))?;
        reading.take_status(&status);
        let filter = self.filter()?;
        let functions = self.ask(
            "own-functions",
            &json!({
                "file": 0, "filter": filter, "of": self.query.of, "sort": self.query.sort, "limit": ROWS_MAX,
            }),
        )?;
        reading.take_functions(&functions);
        // The state may have become newer meanwhile; the figures are those of the newer one.
        if let Some(time_ns) = self.ask("session/status", &json!({"file": 0}))?["shown_until_ns"].as_u64() {
            reading.time_ns = time_ns;
        }
        let to_ns = reading.time_ns.max(1);
        let from_ns = to_ns.saturating_sub(CURVE_NS);
        let curve = self.ask(
            "timeline",
            &json!({
                "file": 0, "filter": filter, "from_ns": from_ns, "to_ns": to_ns, "bins": CURVE_POINTS,
            }),
        );
        // A recording without events has no curve.
        if let Ok(curve) = curve {
            reading.take_curve(&curve);
        }
        reading.resident_bytes = self.resident_bytes(&reading);
        if let Some(pid) = status["status"]["recorder_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()) {
            reading.recorder = self.meter.read(pid);
        }
        // A recording that has just begun is another one a second later.
        self.readings = self.readings.saturating_add(1);
        let is_young = self.readings <= YOUNG_READINGS;
        if is_young || self.judged.is_none_or(|judged| judged.elapsed() >= FINDINGS_EVERY) {
            self.judged = Some(Instant::now());
            let found = self.ask("findings", &json!({"file": 0, "source_lines": 0}));
            let is_recording = reading.stage == "recording";
            self.finding = found.ok().and_then(|found| first_finding(&found, is_recording));
        }
        reading.finding.clone_from(&self.finding);
        Ok(reading)
    }

    /// Resident bytes of the processes that the filter chooses; `None` if one is unknown.
    fn resident_bytes(&self, reading: &Reading) -> Option<u64> {
        let chosen = &self.query.filter.pid;
        let traced = reading.processes.iter().filter(|process| process.is_traced);
        let of_filter =
            traced.filter(|process| chosen.is_empty() || chosen.contains(&process.pid.to_string()));
        let bytes: Vec<Option<u64>> =
            of_filter.map(|process| heapr_proc::resident_bytes(process.pid)).collect();
        if bytes.is_empty() {
            return None;
        }
        bytes.into_iter().sum()
    }

    fn stack(&self, id: &str) -> Result<StackView, NoReading> {
        let body = json!({"file": 0, "filter": self.filter()?, "id": id, "source_lines": SOURCE_LINES});
        self.ask("stack", &body).map(|answer| StackView::of(&answer))
    }

    /// Takes a snapshot on a thread of its own: the copy of a large heap takes long.
    fn snapshot(&self, pids: Vec<u32>) {
        let (news, (session, recorder_pid)) = (self.news.clone(), self.session.clone());
        std::thread::spawn(move || {
            let taken = snapshot::take(&session, recorder_pid, pids);
            let _ = news.send(taken.map_or_else(News::SnapshotFailed, News::Snapshot));
        });
    }
}
