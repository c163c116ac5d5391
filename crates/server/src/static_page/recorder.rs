//! Records the answers that a page may request, until the page has its size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{Seen, StaticChoices, anonymous, html, key};
use crate::api::answer_json;
use crate::error::{Error, Result};
use crate::files::Files;

/// Source lines before and behind a frame's line.
const SOURCE_LINES: u32 = 3;
/// Source lines around a frame's line in the story of a finding, which shows its function.
const STORY_LINES: u32 = 14;
/// Largest number of bytes in the encoder that are not counted yet.
const ENCODER_BYTES: u64 = 256 << 10;

/// Answers that other parts of the recording read again, and how many of them are kept.
const ASKED_AGAIN: [&str; 4] = ["findings", "functions", "report", "snapshot/summary"];
const KEPT_MAX: usize = 64;

fn internal(error: std::io::Error) -> Error {
    Error::Internal(error.to_string())
}

fn told(error: serde_json::Error) -> Error {
    Error::Internal(error.to_string())
}

/// Answers recorded so far, packed.
pub(super) struct Recorder<'a> {
    pub(super) files: &'a Files,
    packed: GzEncoder<Vec<u8>>,
    /// Requests by the key of their answer. They differ where the page is anonymous.
    known: HashMap<String, String>,
    /// Requests with answers that are read again.
    kept: Vec<(String, Rc<[u8]>)>,
    budget: u64,
    is_full: bool,
    left_out: Vec<String>,
    progress: &'a mut dyn FnMut(&str),
    seen: Seen,
    /// Whether requests get the filter of the view.
    is_as_seen: bool,
    /// Filters that the page may choose: title, file, filter.
    choices: Vec<Value>,
    has_sources: bool,
    is_anonymous: bool,
    /// Files whose sums by time are in the page.
    with_sums: Vec<usize>,
}

/// Requests with a filter, and the fields of the filter that the page leaves out of them.
const FILTERED: [(&str, &[&str]); 9] = [
    ("report", &[]),
    ("functions", &[]),
    ("flame", &[]),
    ("leaks", &[]),
    ("histograms", &[]),
    ("frame", &[]),
    ("stack", &[]),
    ("types", &["type"]),
    ("timeline", &["range", "at", "type", "snapshot"]),
];

impl<'a> Recorder<'a> {
    /// Creates an empty recorder for a page.
    pub(super) fn new(
        files: &'a Files,
        wanted: &StaticChoices,
        seen: Seen,
        progress: &'a mut dyn FnMut(&str),
    ) -> Result<Self> {
        let without_answers = html::page("")?.len() as u64;
        // Base64 makes four bytes of three.
        let budget = wanted.page_bytes.saturating_sub(without_answers).saturating_sub(ENCODER_BYTES) / 4 * 3;
        let mut recorder = Self {
            files,
            packed: GzEncoder::new(b"".to_vec(), Compression::default()),
            known: HashMap::new(),
            kept: Vec::new(),
            budget,
            is_full: false,
            left_out: Vec::new(),
            progress,
            seen,
            is_as_seen: false,
            choices: Vec::new(),
            has_sources: wanted.has_sources,
            is_anonymous: wanted.is_anonymous,
            with_sums: Vec::new(),
        };
        recorder.put_raw(b"{\"/api/\":null").map_err(internal)?;
        Ok(recorder)
    }

    fn put_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.packed.write_all(bytes)
    }

    /// Reports the next part; returns false if there is no room for it.
    pub(super) fn begin(&mut self, what: &str) -> bool {
        if self.is_full {
            self.left_out.push(what.to_owned());
            return false;
        }
        (self.progress)(what);
        true
    }

    /// Notes that a part is missing in the page.
    pub(super) fn leave_out(&mut self, what: &str) {
        self.left_out.push(what.to_owned());
    }

    /// Sets whether later requests get the filter of the view.
    pub(super) fn filters_as_seen(&mut self, is_as_seen: bool) {
        self.is_as_seen = is_as_seen;
    }

    /// Whether requests get the filter of the view: other rounds record what has no filter.
    pub(super) fn is_as_seen(&self) -> bool {
        self.is_as_seen
    }

    /// Adds a filter whose answers are recorded to the page's choices.
    pub(super) fn add_choice(&mut self, title: &str, file: usize, filter: &Value) {
        self.choices.push(json!({"title": title, "file": file, "filter": filter}));
    }

    /// Adds the filter of the view to a request; the request's own fields take precedence.
    fn filtered(&self, path: &str, mut body: Value) -> Value {
        let Some((_, left_out)) = FILTERED.iter().find(|(name, _)| *name == path).filter(|_| self.is_as_seen)
        else {
            return body;
        };
        let mut filter = self.seen.filter.as_object().cloned().unwrap_or_default();
        if let Some(own) = body["filter"].as_object() {
            // A moment replaces a range, as on the page.
            if own.contains_key("at") {
                filter.remove("range");
            }
            filter.extend(own.clone());
        }
        filter.retain(|name, _| !left_out.contains(&name.as_str()));
        body["filter"] = Value::Object(filter);
        body
    }

    /// Records the answer of a request, and returns it with all names, for further requests. `None`
    /// if the request fails or the page is full.
    pub(super) fn read(&mut self, path: &str, body: Value) -> Result<Option<Value>> {
        let answer = self.answer(path, body)?;
        answer.map(|answer| serde_json::from_slice(&answer).map_err(told)).transpose()
    }

    /// Records the answer of a request, unless it is recorded already. Returns whether the page has
    /// it.
    pub(super) fn record(&mut self, path: &str, body: Value) -> Result<bool> {
        let asked = self.filtered(path, body.clone());
        let [shown, whole] = self.keys(path, &asked);
        let is_known = self.known.get(&shown) == Some(&whole);
        Ok(!self.is_full && (is_known || self.answer(path, body)?.is_some()))
    }

    /// Records the sums by time of a file, if it has them.
    pub(super) fn sums(&mut self, file: usize) -> Result<()> {
        if self.record("spans", json!({"file": file}))? {
            self.with_sums.push(file);
        }
        Ok(())
    }

    /// Whether the page has the sums by time of a file.
    pub(super) fn has_sums(&self, file: usize) -> bool {
        self.with_sums.contains(&file)
    }

    /// Records a table. Returns whether all of its rows are in the page, so that it needs no other
    /// order.
    pub(super) fn has_all_rows(&mut self, path: &str, body: Value) -> Result<bool> {
        #[derive(serde::Deserialize)]
        struct Rows {
            match_count: usize,
            #[serde(alias = "functions")]
            groups: Vec<serde::de::IgnoredAny>,
        }
        let Some(answer) = self.answer(path, body)? else { return Ok(false) };
        let rows: Rows = serde_json::from_slice(&answer).map_err(told)?;
        Ok(rows.groups.len() >= rows.match_count)
    }

    /// Key of a request in the page, and the key that it has with all names.
    fn keys(&self, path: &str, asked: &Value) -> [String; 2] {
        let whole = key::key(path, asked);
        if !self.is_anonymous {
            return [whole.clone(), whole];
        }
        let mut shown = asked.clone();
        anonymous::hide(&mut shown);
        [key::key(path, &shown), whole]
    }

    /// Records the answer of a request.
    fn answer(&mut self, path: &str, body: Value) -> Result<Option<Rc<[u8]>>> {
        if self.is_full {
            return Ok(None);
        }
        let body = self.filtered(path, body);
        if self.is_anonymous && anonymous::names_objects(path, &body) {
            const OBJECTS: &str = "single objects of heaps";
            if !self.left_out.iter().any(|known| known == OBJECTS) {
                self.leave_out(OBJECTS);
            }
            return Ok(None);
        }
        let asked = format!("{path} {body}");
        if let Some((_, answer)) = self.kept.iter().find(|(known, _)| *known == asked) {
            return Ok(Some(Rc::clone(answer)));
        }
        // Two names that are the same without their folders: the first one has the answer.
        let [key, whole] = self.keys(path, &body);
        if self.known.get(&key).is_some_and(|known| *known != whole) {
            return Ok(None);
        }
        let answer = match answer_json(self.files, path, &asked.as_bytes()[path.len()..]) {
            Ok(answer) => answer,
            // A request that fails for this file is left out of the page.
            Err(Error::Internal(message)) => return Err(Error::Internal(message)),
            Err(_) => return Ok(None),
        };
        let answer: Rc<[u8]> = answer.into();
        if ASKED_AGAIN.contains(&path) && self.kept.len() < KEPT_MAX {
            self.kept.push((asked, Rc::clone(&answer)));
        }
        let name = Value::String(key.clone()).to_string();
        if self.known.insert(key, whole).is_none() {
            let shown = self.shown(path, &answer)?;
            // The page parses only the lines that it shows.
            self.put_raw(b",\n").map_err(internal)?;
            self.put_raw(name.as_bytes()).map_err(internal)?;
            self.put_raw(b":").map_err(internal)?;
            self.put_raw(&shown).map_err(internal)?;
            self.is_full = self.packed.get_ref().len() as u64 > self.budget;
        }
        Ok(Some(answer))
    }

    /// Number of source lines around a frame's line.
    pub(super) fn source_lines(&self) -> u32 {
        if self.has_sources { SOURCE_LINES } else { 0 }
    }

    /// Number of source lines around the line of a finding's story.
    pub(super) fn story_lines(&self) -> u32 {
        if self.has_sources { STORY_LINES } else { 0 }
    }

    /// The findings of a file.
    pub(super) fn findings(&mut self, file: usize) -> Result<Value> {
        let body = json!({"file": file, "source_lines": self.source_lines()});
        Ok(self.read("findings", body)?.unwrap_or_default())
    }

    /// An answer as the page shows it, on one line: source of the program's own frames alone, and
    /// no names if it is anonymous.
    fn shown<'b>(&self, path: &str, answer: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        let is_cut = self.has_sources && path == "stack";
        if !is_cut && !self.is_anonymous && !answer.contains(&b'\n') {
            return Ok(Cow::Borrowed(answer));
        }
        let mut value: Value = serde_json::from_slice(answer).map_err(told)?;
        if is_cut {
            let own = value["own"].as_u64();
            let frames = value["frames"].as_array_mut().into_iter().flatten();
            for (_, frame) in (0..).zip(frames).filter(|(place, _)| Some(*place) != own) {
                frame["source"] = Value::Null;
            }
        }
        if self.is_anonymous {
            if path == "spans" {
                // The page makes no command without the path.
                value["path"] = "".into();
            }
            anonymous::hide(&mut value);
        }
        serde_json::to_vec(&value).map(Cow::Owned).map_err(told)
    }

    /// Completes the page.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        let files = answer_json(self.files, "files", b"")?;
        let mut files: Value =
            serde_json::from_slice(&files).map_err(|error| Error::Internal(error.to_string()))?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let made_unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let address = &self.seen.address;
        let address = if self.is_anonymous { anonymous::address(address) } else { address.clone() };
        files["static"] = json!({
            "made_unix_ns": made_unix_ns,
            "left_out": self.left_out,
            "address": address,
            "choices": self.choices,
            "is_anonymous": self.is_anonymous,
            "source_lines": self.source_lines(),
        });
        // Running sessions are shown as they were: their state will not change any more.
        for file in files["files"].as_array_mut().into_iter().flatten() {
            file["session"] = Value::Null;
            file["tasks"] = json!([]);
        }
        if self.is_anonymous {
            anonymous::hide(&mut files);
        }
        self.put_raw(format!(",\n\"/api/files\":{files}}}").as_bytes()).map_err(internal)?;
        let packed = self.packed.finish().map_err(internal)?;
        html::page(&html::base64(&packed))
    }
}
