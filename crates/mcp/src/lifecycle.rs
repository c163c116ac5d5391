//! Beginning of a connection, and the version of the protocol that each request is of.
//!
//! ```text
//!            initialize ───────────────> session   one version for all requests
//!  opening ──┤
//!            request with its own _meta ─> inline  each request names its version
//! ```
//! `server/discover` and, before a session, `ping` change nothing.

use serde_json::Value;

use crate::message::{Fault, Request};

/// Versions that this server speaks, oldest first.
pub(crate) const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// Newest version with sessions.
const LAST_WITH_SESSIONS: &str = "2025-11-25";
/// First version in which each request tells its version. (Versions are dates, which are compared
/// as texts.)
const FIRST_INLINE: &str = "2026-07-28";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lifecycle {
    /// No request has chosen a way yet.
    #[default]
    Opening,
    /// The client has sent `initialize`.
    Session,
    /// Each request describes itself.
    Inline,
}

/// Properties of a request that its answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Whether answers tell what kind they are of.
    pub(crate) tells_kind: bool,
    /// Whether `ping` exists.
    pub(crate) has_ping: bool,
}

impl Lifecycle {
    /// Returns the version of a session: the requested one, or else the newest.
    pub(crate) fn initialize(&mut self, request: &Request) -> Result<&'static str, Fault> {
        let requested = request.params.get("protocolVersion").and_then(Value::as_str);
        let requested = requested.ok_or_else(|| Fault::parameters("protocolVersion is missing"))?;
        if *self == Self::Opening {
            *self = Self::Session;
        }
        let known = VERSIONS.into_iter().find(|&version| version == requested && version < FIRST_INLINE);
        Ok(known.unwrap_or(LAST_WITH_SESSIONS))
    }

    /// Checks a request other than `initialize`.
    pub(crate) fn check(&mut self, request: &Request) -> Result<Terms, Fault> {
        if *self == Self::Opening && request.method == "ping" {
            return Ok(Terms { tells_kind: false, has_ping: true });
        }
        let is_probe = request.method == "server/discover";
        let version = request.meta(META_VERSION).and_then(Value::as_str);
        let tells_kind = version.is_some_and(|version| version >= FIRST_INLINE);
        let describes_itself = *self != Self::Session || is_probe || tells_kind;
        let has_capabilities = request.meta(META_CAPABILITIES).is_some_and(Value::is_object);
        let missing: Vec<&str> = [(META_VERSION, version.is_some()), (META_CAPABILITIES, has_capabilities)]
            .into_iter()
            .filter_map(|(key, is_there)| (!is_there).then_some(key))
            .collect();
        if describes_itself && !missing.is_empty() {
            return Err(Fault::parameters(format!(
                "request _meta is missing or has malformed required fields: {}",
                missing.join(", ")
            )));
        }
        if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
            return Err(Fault::version(version, &VERSIONS));
        }
        if *self == Self::Opening && !is_probe {
            *self = Self::Inline;
        }
        Ok(Terms { tells_kind, has_ping: !describes_itself })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(method: &str, params: Value) -> Request {
        Request { id: 1.into(), method: method.to_owned(), params: params.as_object().cloned().unwrap() }
    }

    fn with_meta(method: &str, version: &str) -> Request {
        request(method, json!({"_meta": {META_VERSION: version, META_CAPABILITIES: {}}}))
    }

    #[test]
    fn a_session_begins_with_a_version_that_both_speak() {
        for (requested, agreed) in
            [("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")]
        {
            let mut lifecycle = Lifecycle::default();
            let asked = request("initialize", json!({"protocolVersion": requested}));
            assert_eq!(lifecycle.initialize(&asked), Ok(agreed));
            assert_eq!(lifecycle, Lifecycle::Session);
            let terms = Terms { tells_kind: false, has_ping: true };
            assert_eq!(lifecycle.check(&request("tools/list", json!({}))), Ok(terms));
        }
        let mut lifecycle = Lifecycle::default();
        assert!(lifecycle.initialize(&request("initialize", json!({}))).is_err());
        assert_eq!(lifecycle, Lifecycle::Opening);
    }

    #[test]
    fn a_request_without_a_session_describes_itself() {
        let mut lifecycle = Lifecycle::default();
        assert!(lifecycle.check(&request("ping", json!({}))).unwrap().has_ping);
        assert!(lifecycle.check(&request("tools/list", json!({}))).is_err());
        let modern = Terms { tells_kind: true, has_ping: false };
        assert_eq!(lifecycle.check(&with_meta("server/discover", FIRST_INLINE)), Ok(modern));
        assert_eq!(lifecycle, Lifecycle::Opening);
        let unknown = Fault::version("2027-01-01", &VERSIONS);
        assert_eq!(lifecycle.check(&with_meta("tools/list", "2027-01-01")), Err(unknown));
        assert_eq!(lifecycle.check(&with_meta("tools/list", FIRST_INLINE)), Ok(modern));
        assert_eq!(lifecycle, Lifecycle::Inline);
        assert!(lifecycle.check(&request("tools/list", json!({}))).is_err());
        let older = Terms { tells_kind: false, has_ping: false };
        assert_eq!(lifecycle.check(&with_meta("tools/list", "2025-06-18")), Ok(older));
    }
}
