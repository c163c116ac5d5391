//! One line of the report: a topic, its state and advice.

/// State of a topic.
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
    /// Name of the topic.
    pub(super) topic: &'static str,
    pub(super) state: State,
    /// Result of the check, in words.
    pub(super) found: String,
    /// Change that is advised; empty if no change is needed.
    pub(super) advice: String,
}

impl Check {
    /// Makes a check that works.
    pub(super) fn ok(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, state: State::Ok, found: found.into(), advice: String::new() }
    }

    /// Makes a check that works in part.
    pub(super) fn limited(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, state: State::Limited, found: found.into(), advice: advice.into() }
    }

    /// Makes a check that does not work.
    pub(super) fn no(topic: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, state: State::No, found: found.into(), advice: advice.into() }
    }
}

impl State {
    /// Name of the state in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::No => "no",
        }
    }
}
