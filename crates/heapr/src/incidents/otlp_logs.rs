//! An incident as a record of OTLP logs, in OTLP's JSON.

use heapr_incident::{HolderKind, Incident, Kind};
use serde_json::{Value, json};

use crate::transfer::{Outcome, Url, post};

/// Path that a receiver of OTLP takes logs at.
pub(crate) const LOGS_PATH: &str = "/v1/logs";

/// Sends incidents to a receiver of OTLP, one after the other.
///
/// # Errors
/// The address has a wrong form, or the receiver does not take one.
pub(super) fn send(url: &str, all: &[&Incident]) -> anyhow::Result<()> {
    let url = Url::parse(url)?.join(LOGS_PATH);
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    for (place, incident) in all.iter().enumerate() {
        match post(&url, &headers, &log_record(incident)?, None) {
            Outcome::Taken => {}
            // The address may hold a secret.
            Outcome::Later(said) | Outcome::Refused { said, .. } => anyhow::bail!(
                "{} of {} incidents were sent: {}",
                place,
                all.len(),
                said.replace(&url.to_string(), "the address")
            ),
        }
    }
    Ok(())
}

/// Severities of OTLP.
const WARN: (u32, &str) = (13, "WARN");
const ERROR: (u32, &str) = (17, "ERROR");

/// Writes a request with one record.
///
/// # Errors
/// None of the fields can fail to be written.
pub(crate) fn log_record(incident: &Incident) -> serde_json::Result<Vec<u8>> {
    let process = &incident.process;
    let mut resource = vec![text("service.name", &process.name), number("process.pid", process.pid.into())];
    let optional = [
        ("host.name", &process.host),
        ("container.id", &process.container),
        ("heapr.unit", &process.unit),
        ("heapr.group", &process.group),
    ];
    resource.extend(optional.iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    resource.push(text("process.executable.path", &process.executable));
    let cause = &incident.cause;
    let mut attributes = vec![
        text("event.name", "heapr.incident"),
        number("heapr.incident.number", incident.number.into()),
        text("heapr.incident.kind", incident.kind.name()),
        text("heapr.cause", cause.kind.name()),
    ];
    attributes.extend(cause.limit_bytes.map(|bytes| number("heapr.limit_bytes", bytes)));
    if let Some(holder) = incident.holders.first() {
        attributes.push(text("heapr.holder.name", &holder.name));
        attributes.push(number("heapr.holder.bytes", holder.bytes));
    }
    let function = incident.holders.iter().find(|holder| holder.kind == HolderKind::Function);
    if let Some(function) = function {
        attributes.push(text("heapr.function.name", &function.name));
        attributes.push(number("heapr.function.bytes", function.bytes));
    }
    let (severity, severity_text) = if incident.kind == Kind::Death { ERROR } else { WARN };
    serde_json::to_vec(&json!({"resourceLogs": [{
        "resource": {"attributes": resource},
        "scopeLogs": [{
            "scope": {"name": "heapr", "version": env!("CARGO_PKG_VERSION")},
            "logRecords": [{
                "timeUnixNano": incident.time_unix_ns.to_string(),
                "severityNumber": severity,
                "severityText": severity_text,
                "body": {"stringValue": incident.sentences.join(" ")},
                "attributes": attributes,
            }],
        }],
    }]}))
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Attribute of an integer, which is a string in OTLP's JSON.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapr_incident::{Holder, ProcessNamed};

    #[test]
    fn a_death_is_an_error_with_its_cause_and_its_largest_holder() {
        let incident = Incident {
            number: 3,
            time_unix_ns: 5,
            process: ProcessNamed { pid: 7, name: "web".to_owned(), ..ProcessNamed::default() },
            holders: vec![Holder { name: "remember".to_owned(), bytes: 9, ..Holder::default() }],
            sentences: vec!["a.".to_owned(), "b.".to_owned()],
            ..Incident::default()
        };
        let request: Value = serde_json::from_slice(&log_record(&incident).unwrap()).unwrap();
        let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(
            (&record["timeUnixNano"], &record["severityText"], &record["body"]["stringValue"]),
            (&json!("5"), &json!("ERROR"), &json!("a. b."))
        );
        let has = |key: &str, value: &Value| {
            let all = record["attributes"].as_array().unwrap();
            all.iter().any(|one| one["key"] == key && one["value"] == *value)
        };
        assert!(has("heapr.holder.bytes", &json!({"intValue": "9"})), "{record:#}");
        assert!(has("heapr.cause", &json!({"stringValue": "unknown"})), "{record:#}");
        let resource = &request["resourceLogs"][0]["resource"]["attributes"];
        assert_eq!(resource[0], text("service.name", "web"));
    }
}
