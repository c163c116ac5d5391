//! First sentence of a warning, and the clause that all first sentences have.

use heapr_table::quantity::{bytes, plural};

use crate::climb::Trigger;
use crate::incident::Incident;
use crate::wall_clock::clock_text;

/// Clause on the holder in a sentence that names no memory.
pub(crate) fn so_held(held: &str) -> String {
    held.replacen(", ", "; ", 1).replacen(" of it in ", " of its memory was in ", 1)
}

/// Sentence on a process that lives near a limit. `held`: clause on the largest holder.
pub(crate) fn near_limit(incident: &Incident, who: &str, held: &str) -> String {
    let when = clock_text(incident.time_unix_ns, incident.time_unix_ns);
    let group = incident.group.as_ref();
    let path = group.and_then(|group| group.limited_group.clone()).unwrap_or_else(|| "its group".to_owned());
    let limit = group.and_then(|group| group.limit_bytes).map(bytes).unwrap_or_default();
    match incident.trigger {
        Some(Trigger::Share { percent }) => {
            format!(
                "{who} may be killed soon: at {when} {path} had used {percent} % of its limit of {limit}{held}."
            )
        }
        Some(Trigger::Trend { minutes }) => {
            let within =
                if minutes == 0 { "a minute".to_owned() } else { format!("{} minutes", minutes + 1) };
            format!(
                "{who} may be killed soon: from {when} on, {path} reaches its limit of {limit} within {within}{held}."
            )
        }
        Some(Trigger::RssStep { rss_bytes }) => {
            format!("{who} has grown: at {when} it had {} resident{held}.", bytes(rss_bytes))
        }
        Some(Trigger::Swap { swapped_bytes }) => {
            let path = group.map_or("its group", |group| group.path.as_str());
            format!(
                "{who} is being swapped out: at {when} {path} had {} in swap{}.",
                bytes(swapped_bytes),
                so_held(held)
            )
        }
        Some(Trigger::SoftLimit { limit_bytes, times }) => {
            let path = group.map_or("its group", |group| group.path.as_str());
            format!(
                "{who} is being slowed down by the kernel: at {when} {path} had met its soft limit of {} {}{}.",
                bytes(limit_bytes),
                plural(times, "time"),
                so_held(held)
            )
        }
        Some(Trigger::OwnLimit { of, percent, limit_bytes }) => format!(
            "{who} may end soon by itself: at {when} it had used {percent} % of its limit of {} of {}{}.",
            of.name(),
            bytes(limit_bytes),
            so_held(held)
        ),
        None => format!("{who} was looked at, at {when}{held}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::OwnLimit;
    use crate::incident::{GroupFacts, ProcessNamed};

    #[test]
    fn swap_and_limits_of_the_process_have_their_sentences() {
        let mut incident = Incident {
            process: ProcessNamed { pid: 7, name: "web".to_owned(), ..ProcessNamed::default() },
            group: Some(GroupFacts { path: "/web".to_owned(), ..GroupFacts::default() }),
            trigger: Some(Trigger::Swap { swapped_bytes: 5 << 20 }),
            ..Incident::default()
        };
        let told = near_limit(&incident, "web (7)", ", 60 % of it in f");
        assert!(told.starts_with("web (7) is being swapped out: at "), "{told}");
        assert!(told.ends_with(" /web had 5.00 MiB in swap; 60 % of its memory was in f."), "{told}");
        incident.trigger = Some(Trigger::SoftLimit { limit_bytes: 48 << 20, times: 7 });
        let told = near_limit(&incident, "web (7)", ", 60 % of it in f");
        let end = " /web had met its soft limit of 48.0 MiB 7 times; 60 % of its memory was in f.";
        assert!(
            told.starts_with("web (7) is being slowed down by the kernel: at ") && told.ends_with(end),
            "{told}"
        );
        let (of, limit_bytes) = (OwnLimit::V8Heap, 100 << 20);
        incident.trigger = Some(Trigger::OwnLimit { of, percent: 87, limit_bytes });
        let told = near_limit(&incident, "web (7)", "");
        assert!(told.ends_with(" it had used 87 % of its limit of V8's heap of 100.0 MiB."), "{told}");
    }
}
