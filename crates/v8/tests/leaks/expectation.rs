//! Expectation in the header of a victim.

use std::path::Path;

use heapr_v8::analysis::Suspect;

use crate::program::victims;

/// Lines `// suspect: NAME`, `// place: FILE:LINE`, `// collects: CLASS at FILE:LINE`. Names
/// separated by `|` are alternatives. All are starts or parts of the printed text.
#[derive(Debug)]
pub(crate) struct Expectation {
    suspect: String,
    place: Option<String>,
    collects: Option<String>,
}

impl Expectation {
    pub(crate) fn of(name: &str) -> Self {
        Self::of_file(&victims().join(name))
    }

    pub(crate) fn of_file(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the victim is there");
        let line = |key: &str| {
            let start = format!("// {key}: ");
            text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
        };
        let suspect = line("suspect").expect("every victim names its suspect");
        Self { suspect, place: line("place"), collects: line("collects") }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.suspect == "none"
    }

    /// Whether a suspect is the expected owner, by name and location.
    pub(crate) fn is_met_by(&self, suspect: &Suspect) -> bool {
        let place = suspect.place.as_ref().map(ToString::to_string).unwrap_or_default();
        self.suspect.split('|').any(|name| suspect.name.starts_with(name)) && self.is_at(&place)
    }

    fn is_at(&self, place: &str) -> bool {
        self.place.as_ref().is_none_or(|places| places.split('|').any(|expected| place.contains(expected)))
    }

    pub(crate) fn check(&self, first: &Suspect, context: &str) {
        if self.is_nothing() {
            return;
        }
        assert!(self.suspect.split('|').any(|name| first.name.starts_with(name)), "{context}");
        if let Some(expected) = &self.place {
            let place = first.place.as_ref().map(ToString::to_string).unwrap_or_default();
            assert!(self.is_at(&place), "place {place}, expected {expected}\n{context}");
        }
        if let Some(expected) = &self.collects {
            let (class, place) = expected.split_once(" at ").unwrap_or((expected, ""));
            let found = first.collects.iter().any(|collected| {
                let at =
                    collected.example_place.as_ref().map(|(_, place)| place.to_string()).unwrap_or_default();
                class.split('|').any(|class| class == collected.class) && at.contains(place)
            });
            assert!(found, "collects {:?}, expected {expected}\n{context}", first.collects);
        }
        assert!(first.path.len() > 1, "{context}\n{:?}", first.path);
    }
}
