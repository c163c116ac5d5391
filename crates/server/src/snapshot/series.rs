//! Classes over a series of snapshots: object counts and sizes in each, steady growth first. The
//! series is made from the summaries, without loading a heap.

use std::cmp::Reverse;
use std::collections::HashMap;

use heapr_query::{SteadyGrowth, ordered};
use heapr_table::SortRows as _;
use heapr_v8::StoredSummary;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Error, Result};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json as answer_json, read_with};

/// Largest number of snapshots in a series.
const SNAPSHOTS_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SeriesRequest {
    files: Vec<usize>,
    sort: SeriesOrder,
    descending: Descending,
    /// Whether classes without a change are included.
    same: bool,
}

impl Default for SeriesRequest {
    fn default() -> Self {
        let sort = SeriesOrder::By(SeriesColumn::Steady);
        Self { files: Vec::new(), sort, descending: Descending::default(), same: false }
    }
}

/// Column of a series.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SeriesColumn {
    Steady,
    Growth,
    Steadiness,
    CountGrowth,
    Retained,
    Name,
}

/// Order of the classes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
enum SeriesOrder {
    By(SeriesColumn),
    /// By the retained size in one snapshot, by its index in the series.
    RetainedAt(usize),
}

impl TryFrom<String> for SeriesOrder {
    type Error = serde::de::value::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.parse() {
            Ok(at) => Ok(Self::RetainedAt(at)),
            Err(_) => SeriesColumn::deserialize(text.as_str().into_deserializer()).map(Self::By),
        }
    }
}

/// A class over the series; 0 for a snapshot without it.
struct ClassSeries<'a> {
    name: &'a str,
    place: Option<&'a str>,
    /// Key of the class in each snapshot that has it.
    keys: Vec<Option<&'a str>>,
    object_counts: Vec<u64>,
    shallow_bytes: Vec<u64>,
    retained_bytes: Vec<u64>,
}

impl ClassSeries<'_> {
    fn growth(&self) -> SteadyGrowth {
        SteadyGrowth::of(&self.retained_bytes)
    }

    /// True if all amounts are equal in all snapshots.
    fn is_same(&self) -> bool {
        let amounts = [&self.object_counts, &self.shallow_bytes, &self.retained_bytes];
        amounts.iter().all(|of| of.windows(2).all(|pair| pair[0] == pair[1]))
    }

    fn count_growth(&self) -> i64 {
        SteadyGrowth::of(&self.object_counts).growth
    }
}

/// Classes of all snapshots, matched by name and location. Keys contain numbers of scripts, which
/// differ between processes.
fn series_of<'a>(summaries: &[&'a StoredSummary]) -> Vec<ClassSeries<'a>> {
    let count = summaries.len();
    let mut by_name: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    let mut all: Vec<ClassSeries<'a>> = Vec::new();
    for (at, summary) in summaries.iter().enumerate() {
        for class in &summary.classes {
            let place = class.place.as_deref();
            let number = *by_name.entry((&class.name, place)).or_insert_with(|| {
                all.push(ClassSeries {
                    name: &class.name,
                    place,
                    keys: vec![None; count],
                    object_counts: vec![0; count],
                    shallow_bytes: vec![0; count],
                    retained_bytes: vec![0; count],
                });
                all.len() - 1
            });
            let series = &mut all[number];
            series.keys[at].get_or_insert(&class.key);
            series.object_counts[at] += class.object_count;
            series.shallow_bytes[at] += class.self_bytes;
            // Memory that two copies of a loaded script both retain is counted twice, as in the
            // lines of the summary.
            series.retained_bytes[at] += class.retained_bytes;
        }
    }
    all
}

fn sort(all: &mut [ClassSeries<'_>], order: SeriesOrder) -> Result<()> {
    let last = |values: &[u64]| values.last().copied().unwrap_or(0);
    let column = match order {
        SeriesOrder::By(column) => column,
        SeriesOrder::RetainedAt(at) if all.iter().all(|series| at < series.keys.len()) => {
            all.sort_rows_by_key(|series| Reverse(series.retained_bytes[at]));
            return Ok(());
        }
        SeriesOrder::RetainedAt(at) => {
            return Err(Error::bad("sort", format!("{at:?} is no column of a series")));
        }
    };
    match column {
        SeriesColumn::Steady => all.sort_by_cached_key(|series| Reverse(ordered(series.growth().rank()))),
        SeriesColumn::Growth => all.sort_rows_by_key(|series| Reverse(series.growth().growth)),
        SeriesColumn::Steadiness => all.sort_by_cached_key(|series| {
            let growth = series.growth();
            Reverse((ordered(growth.steadiness), growth.growth))
        }),
        SeriesColumn::CountGrowth => all.sort_rows_by_key(|series| Reverse(series.count_growth())),
        SeriesColumn::Retained => all.sort_rows_by_key(|series| Reverse(last(&series.retained_bytes))),
        SeriesColumn::Name => all.sort_rows_by(|one, other| one.name.cmp(other.name)),
    }
    Ok(())
}

/// A class over several snapshots, with one number for each.
#[derive(Debug, Serialize)]
struct ClassSeriesRow {
    class: String,
    place: Option<String>,
    /// Key of the class in each snapshot that has it.
    class_keys: Vec<Option<String>>,
    object_count_at: Vec<u64>,
    shallow_bytes_at: Vec<u64>,
    retained_bytes_at: Vec<u64>,
    count_growth: i64,
    growth_bytes: i64,
    /// Steadiness of the growth, 0 to 1.
    steadiness: f64,
}

pub(super) fn series(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (SeriesRequest, PageRows) = read_with(body)?;
    if !(2..=SNAPSHOTS_MAX).contains(&request.files.len()) {
        let count = request.files.len();
        return Err(Error::bad("files", format!("{count} snapshots: 2 to {SNAPSHOTS_MAX} make a series")));
    }
    let files = request.files.iter().map(|&file| context.files.snapshot(file)).collect::<Result<Vec<_>>>()?;
    let summaries = files.iter().map(|file| file.summary()).collect::<Result<Vec<_>>>()?;
    let wanted = page.text();
    let mut all = series_of(&summaries);
    sort(&mut all, request.sort)?;
    all.retain(|series| request.same || !series.is_same());
    all.retain(|series| wanted.is_empty() || series.name.to_lowercase().contains(&wanted));
    let row = |series: &ClassSeries<'_>| {
        let growth = series.growth();
        ClassSeriesRow {
            class: series.name.to_owned(),
            place: series.place.map(|place| files[0].view.original_place(place)),
            class_keys: series.keys.iter().map(|key| key.map(str::to_owned)).collect(),
            object_count_at: series.object_counts.clone(),
            shallow_bytes_at: series.shallow_bytes.clone(),
            retained_bytes_at: series.retained_bytes.clone(),
            count_growth: series.count_growth(),
            growth_bytes: growth.growth,
            steadiness: growth.steadiness,
        }
    };
    let rows: Vec<ClassSeriesRow> = page.of(&all, request.descending).map(row).collect();
    let totals = summaries.iter().map(|summary| summary.statistics.total_bytes);
    answer_json(&json!({
        "schema": "heapr.view.snapshot.series/1",
        "command": null,
        "files": request.files,
        "total_bytes": totals.collect::<Vec<_>>(),
        "row_count": all.len(),
        "offset": page.offset,
        "rows": rows,
    }))
}

#[cfg(test)]
mod tests {
    use heapr_v8::StoredClass;

    use super::*;

    fn summary(classes: &[(&str, &str, u64)]) -> StoredSummary {
        let classes = classes.iter().map(|&(name, key, retained_bytes)| StoredClass {
            name: name.to_owned(),
            key: key.to_owned(),
            place: None,
            object_count: retained_bytes / 10,
            distance: 1,
            self_bytes: retained_bytes / 2,
            retained_bytes,
        });
        StoredSummary { classes: classes.collect(), ..StoredSummary::default() }
    }

    #[test]
    fn a_class_is_followed_by_its_name_whatever_its_key() {
        let summaries = [summary(&[("A", "1", 10), ("B", "2", 90)]), summary(&[("A", "7", 30)])];
        let found = series_of(&summaries.iter().collect::<Vec<_>>());
        let [a, b] = found.as_slice() else { panic!("{} classes", found.len()) };
        assert_eq!((a.name, a.keys.as_slice()), ("A", &[Some("1"), Some("7")][..]));
        assert_eq!((a.retained_bytes.as_slice(), a.object_counts.as_slice()), (&[10, 30][..], &[1, 3][..]));
        assert_eq!((b.keys[1], b.retained_bytes.as_slice()), (None, &[90, 0][..]));
    }

    #[test]
    fn what_grew_steadily_comes_first_and_what_shrank_last() {
        let summaries = [
            summary(&[("Leak", "l", 10), ("Leap", "p", 10), ("Gone", "g", 90), ("Same", "s", 500)]),
            summary(&[("Leak", "l", 60), ("Leap", "p", 10), ("Gone", "g", 10), ("Same", "s", 500)]),
            summary(&[("Leak", "l", 120), ("Leap", "p", 150), ("Gone", "g", 10), ("Same", "s", 500)]),
        ];
        let mut found = series_of(&summaries.iter().collect::<Vec<_>>());
        let mut by = |key: &str| {
            sort(&mut found, SeriesOrder::try_from(key.to_owned()).unwrap()).unwrap();
            found.iter().map(|series| series.name).collect::<Vec<_>>()
        };
        assert_eq!(by("steady"), ["Leak", "Leap", "Same", "Gone"]);
        assert_eq!(by("growth"), ["Leap", "Leak", "Same", "Gone"]);
        assert_eq!(by("1"), ["Same", "Leak", "Leap", "Gone"]);
        assert_eq!(by("name"), ["Gone", "Leak", "Leap", "Same"]);
        assert!(sort(&mut found, SeriesOrder::RetainedAt(3)).is_err());
        let error = SeriesOrder::try_from("colour".to_owned()).unwrap_err().to_string();
        assert!(error.contains("`colour`, expected one of `steady`"), "{error}");
    }
}
