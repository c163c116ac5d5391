//! One thing that was looked at.

/// How well it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Works.
    Ok,
    /// Works in part, or with a detour.
    Limited,
    /// Does not work.
    No,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// What was looked at.
    pub(super) topic: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What to change; empty where nothing need be.
    pub(super) advice: String,
}

impl Check {
    /// Works.
    pub(super) fn ok(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, state: State::Ok, found: found.into(), advice: String::new() }
    }

    /// Works in part.
    pub(super) fn limited(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, state: State::Limited, found: found.into(), advice: advice.into() }
    }

    /// Does not work.
    pub(super) fn no(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, state: State::No, found: found.into(), advice: advice.into() }
    }
}

impl State {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::No => "no",
        }
    }
}
