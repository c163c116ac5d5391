//! Table of engines: the path where each accepts profiles, and their form.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use heapr_export::{Format, Profile};
use serde_json::json;

/// Engine that accepts profiles.
#[derive(Debug)]
pub(super) struct Engine {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Path appended to the given address.
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) is_gzipped: bool,
    /// Name of the format of [`heapr_export::FORMATS`] that goes into the body.
    format: &'static str,
    body: fn(&Profile<'_>, Vec<u8>) -> Vec<u8>,
}

/// All engines.
pub(super) const ENGINES: [Engine; 3] = [
    Engine {
        name: "pyroscope",
        path: "/push.v1.PusherService/Push",
        content_type: "application/json",
        is_gzipped: false,
        format: "pprof",
        body: pyroscope,
    },
    Engine {
        name: "parca",
        path: "/api/profiles/writeraw",
        content_type: "application/json",
        is_gzipped: false,
        format: "pprof",
        body: parca,
    },
    Engine {
        name: "otlp",
        path: "/v1development/profiles",
        content_type: "application/x-protobuf",
        is_gzipped: true,
        format: "otlp",
        body: |_, bytes| bytes,
    },
];

impl Engine {
    /// Returns the body of a request.
    pub(super) fn body(&self, profile: &Profile<'_>) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(format) = Format::of_name(self.format) {
            (format.write)(&mut bytes, profile)?;
        }
        let body = (self.body)(profile, bytes);
        if !self.is_gzipped {
            return Ok(body);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&body)?;
        Ok(encoder.finish()?)
    }
}

/// Returns the labels in the engines' spelling, with `_` for the dots in names.
fn labels(profile: &Profile<'_>) -> Vec<serde_json::Value> {
    let label = |name: &str, value: &str| json!({ "name": name.replace('.', "_"), "value": value });
    let mut labels = vec![label("__name__", "memory")];
    labels.extend(profile.labels.iter().map(|(key, value)| label(key, value)));
    labels
}

/// Builds a `push.v1.PushRequest` as JSON, with bytes in base64.
fn pyroscope(profile: &Profile<'_>, bytes: Vec<u8>) -> Vec<u8> {
    let samples = json!([{ "rawProfile": STANDARD.encode(bytes) }]);
    json!({ "series": [{ "labels": labels(profile), "samples": samples }] }).to_string().into_bytes()
}

/// Builds a `parca.profilestore.v1alpha1.WriteRawRequest` as JSON.
fn parca(profile: &Profile<'_>, bytes: Vec<u8>) -> Vec<u8> {
    let samples = json!([{ "rawProfile": STANDARD.encode(bytes) }]);
    let series = json!([{ "labels": { "labels": labels(profile) }, "samples": samples }]);
    json!({ "series": series, "normalized": false }).to_string().into_bytes()
}
