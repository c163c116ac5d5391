//! Resident memory by class, at the moments of a saved answer or of a recording.

use heapr_resident::{Class, PageCells, SavedDetail, SavedFinding, SavedLine, SavedMoments, class_label};
use heapr_table::SortRows as _;
use serde::{Deserialize, Serialize};

use crate::command_line::command;
use crate::error::Result;
use crate::files::ResidentSource;
use crate::request::{Answer, Context, json, number, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResidentRequest {
    file: usize,
    /// Index of the moment that is answered in full; the last one by default.
    #[serde(default)]
    moment: Option<usize>,
    /// Largest number of moments. Of neighbours the one with the most resident bytes is answered.
    #[serde(default = "number::<2000>")]
    limit: usize,
}

/// A class over all moments.
#[derive(Debug, Serialize)]
struct ResidentBand {
    class: String,
    label: String,
    /// Index of the class among all classes, for its colour.
    place: usize,
    /// Resident bytes at each moment.
    values: Vec<u64>,
    /// Halves of their 95 % intervals, if they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plus_minus: Vec<u64>,
}

/// Resident memory over time, with one moment in full.
#[derive(Debug, Serialize)]
struct ResidentAnswer {
    schema: &'static str,
    command: String,
    /// Name of the process.
    of: String,
    times_ns: Vec<Option<u64>>,
    names: Vec<String>,
    rss_bytes: Vec<u64>,
    /// Bands, largest at the shown moment first.
    bands: Vec<ResidentBand>,
    /// Index of the moment that is answered in full.
    shown: usize,
    lines: Vec<SavedLine>,
    pages: Option<PageCells>,
    findings: Vec<SavedFinding>,
    /// Limits: facts that could not be determined.
    limits: Vec<String>,
}

pub(super) fn resident(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ResidentRequest = read(body)?;
    let (path, text, mut kept) = match context.files.resident(request.file)? {
        ResidentSource::Kept(file) => (file.path.clone(), Some(file.clone()), file.kept.clone()),
        ResidentSource::Trace(file) => {
            let kept = SavedMoments::of_recording(file.trace())
                .map_err(heapr_query::Error::from)?
                .unwrap_or_default();
            (file.path.clone(), None, kept)
        }
    };
    kept.thinned(request.limit.clamp(2, 20_000));
    let text = text.as_ref().map_or("", |file| file.text.as_str());
    let last = kept.moments.len().saturating_sub(1);
    let shown = request.moment.unwrap_or(last).min(last);
    let detail = kept.moments.get(shown).map_or_else(SavedDetail::default, |moment| moment.detail(text));
    let SavedDetail { mut lines, pages, findings } = detail;
    lines.retain(|line| line.bytes > 0);
    lines.sort_rows_by_key(|line| std::cmp::Reverse(line.bytes));
    json(&ResidentAnswer {
        schema: "heapr.view.resident/1",
        command: command(&["explain", &path.display().to_string()]),
        times_ns: kept.moments.iter().map(|moment| moment.time_ns).collect(),
        names: kept.moments.iter().map(|moment| moment.name.clone()).collect(),
        rss_bytes: kept.moments.iter().map(|moment| moment.rss_bytes).collect(),
        bands: bands(&kept, shown),
        shown,
        lines,
        pages,
        findings,
        of: kept.of,
        limits: kept.limits,
    })
}

/// Bands of all classes that ever have resident bytes.
fn bands(kept: &SavedMoments, shown: usize) -> Vec<ResidentBand> {
    let mut keys: Vec<&str> =
        kept.moments.iter().flat_map(|moment| &moment.lines).map(|(class, _)| class.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let is_estimate = |key: &str| kept.moments.iter().any(|moment| moment.plus_minus(key) > 0);
    let band = |key: &str| ResidentBand {
        class: key.to_owned(),
        label: class_label(key),
        place: Class::ALL.iter().position(|class| class.key() == key).unwrap_or(Class::ALL.len()),
        values: kept.moments.iter().map(|moment| moment.bytes(key)).collect(),
        plus_minus: if is_estimate(key) {
            kept.moments.iter().map(|moment| moment.plus_minus(key)).collect()
        } else {
            Vec::new()
        },
    };
    let mut bands: Vec<ResidentBand> = keys.into_iter().map(band).collect();
    bands.retain(|band| band.values.iter().any(|bytes| *bytes > 0));
    bands.sort_rows_by_key(|band| std::cmp::Reverse(band.values.get(shown).copied()));
    bands
}
