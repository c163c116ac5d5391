//! Incidents in the text form that Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use heapr_table::plain::is_harmless;

use crate::incident::{HolderKind, Incident, Kind};

/// Largest number of functions.
const FUNCTIONS_MAX: usize = 10;
/// Largest number of characters of a label's value.
const LABEL_CHARACTERS_MAX: usize = 120;

/// Writes the numbers of incidents, and the largest functions of the deaths. `total`: number of the
/// last incident, which counts those that were removed, too.
#[must_use]
pub fn metrics<'a>(incidents: impl IntoIterator<Item = &'a Incident>, total: u32) -> String {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for incident in incidents {
        *counts.entry((incident.kind.name(), incident.cause.kind.name())).or_default() += 1;
        let is_death = incident.kind == Kind::Death;
        for holder in incident.holders.iter().filter(|holder| is_death && holder.kind == HolderKind::Function)
        {
            // Long names may begin alike: two samples of one label are an error to Prometheus.
            let most = functions.entry(label(&holder.name)).or_default();
            *most = (*most).max(holder.bytes);
        }
    }
    let mut text = format!(
        "# HELP heapr_incidents_total Incidents so far.\n# TYPE heapr_incidents_total counter\n\
         heapr_incidents_total {total}\n\
         # HELP heapr_incidents Incidents in the folder.\n# TYPE heapr_incidents gauge\n"
    );
    for ((kind, cause), number) in counts {
        let _ = writeln!(text, "heapr_incidents{{kind=\"{kind}\",cause=\"{cause}\"}} {number}");
    }
    text.push_str(
        "# HELP heapr_incident_function_bytes Largest amount that a function held at a death.\n\
         # TYPE heapr_incident_function_bytes gauge\n",
    );
    let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
    functions.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    for (name, bytes) in functions.iter().take(FUNCTIONS_MAX) {
        let _ = writeln!(text, "heapr_incident_function_bytes{{function=\"{name}\"}} {bytes}");
    }
    text
}

fn label(value: &str) -> String {
    let mut text = String::new();
    for character in value.chars().take(LABEL_CHARACTERS_MAX) {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            character if !is_harmless(character) => text.push(' '),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::Holder;

    #[test]
    fn counts_are_by_cause_and_functions_are_bounded() {
        let holder = |name: String, bytes| Holder { name, bytes, ..Holder::default() };
        let mut holders: Vec<Holder> =
            (0..20).map(|number| holder(format!("f\"{number}\n"), number)).collect();
        let long = "f".repeat(LABEL_CHARACTERS_MAX);
        holders.extend([holder(format!("{long}1"), 50), holder(format!("{long}2"), 60)]);
        let death = Incident { holders, ..Incident::default() };
        let warning = Incident { kind: Kind::Warning, ..death.clone() };
        let text = metrics([&death, &death, &warning], 7);
        assert!(text.contains("\nheapr_incidents_total 7\n"), "{text}");
        assert!(text.contains("heapr_incidents{kind=\"death\",cause=\"unknown\"} 2\n"), "{text}");
        assert!(text.contains("heapr_incidents{kind=\"warning\",cause=\"unknown\"} 1\n"), "{text}");
        assert!(text.contains("heapr_incident_function_bytes{function=\"f\\\"19 \"} 19\n"), "{text}");
        assert_eq!(text.matches("heapr_incident_function_bytes{").count(), FUNCTIONS_MAX);
        assert_eq!(text.matches(&format!("{long}\"}} 60\n")).count(), 1);
        assert_eq!(text.matches(&long).count(), 1);
    }
}
