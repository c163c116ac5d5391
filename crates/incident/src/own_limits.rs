//! Limits that a process has by itself, and options by which it ends at them.

use serde::{Deserialize, Serialize};

use crate::ending::Ending;

/// Amount that has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limited {
    /// Used bytes.
    pub used_bytes: u64,
    /// Limit in bytes.
    pub limit_bytes: u64,
}

impl Limited {
    /// Share of the limit that counts as used up, in hundredths.
    const FULL_PERCENT: u64 = 90;

    /// Whether the limit is nearly met. 0 is no limit: V8's option has this meaning.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let full = u128::from(self.limit_bytes) * u128::from(Self::FULL_PERCENT);
        self.limit_bytes > 0 && u128::from(self.used_bytes) * 100 >= full
    }
}

/// Limit of a language's heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeLimit {
    /// Heap, as in "V8's heap".
    pub heap: String,
    /// Source of the limit, such as `--max-old-space-size`.
    pub set_by: String,
    /// Amount at the last reading, and the limit.
    pub amount: Limited,
    /// Bytes at the end, if it went on to grow as before; `None`: it did not grow.
    #[serde(default)]
    pub expected_bytes: Option<u64>,
}

impl RuntimeLimit {
    /// Whether the heap was nearly full at the last reading, or would have been at the end.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let expected = self.expected_bytes.map(|used_bytes| Limited { used_bytes, ..self.amount });
        self.amount.is_full() || expected.is_some_and(|expected| expected.is_full())
    }
}

/// Option by which a Java program ends at an OutOfMemoryError.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtOutOfMemory {
    /// `-XX:+ExitOnOutOfMemoryError`: status 3.
    Exit,
    /// `-XX:+CrashOnOutOfMemoryError`: SIGABRT, and a report.
    Crash,
}

impl AtOutOfMemory {
    /// The option.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Exit => "-XX:+ExitOnOutOfMemoryError",
            Self::Crash => "-XX:+CrashOnOutOfMemoryError",
        }
    }

    /// Whether the option ends a program so.
    pub(crate) fn ends_so(self, ending: Ending) -> bool {
        match self {
            Self::Exit => ending == Ending::Exited { status: 3 },
            Self::Crash => matches!(ending, Ending::Signalled { signal: 6, .. }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_ending() {
        let (status, abort) = (Ending::Exited { status: 3 }, Ending::Signalled { signal: 6, has_core: true });
        assert!(AtOutOfMemory::Exit.ends_so(status) && AtOutOfMemory::Crash.ends_so(abort));
        assert!(!AtOutOfMemory::Exit.ends_so(abort) && !AtOutOfMemory::Crash.ends_so(status));
        assert!(!Limited { used_bytes: 9, limit_bytes: 0 }.is_full());
        let amount = Limited { used_bytes: 70, limit_bytes: 100 };
        let heap =
            RuntimeLimit { heap: String::new(), set_by: String::new(), amount, expected_bytes: Some(95) };
        assert!(heap.is_full() && !RuntimeLimit { expected_bytes: None, ..heap }.is_full());
    }
}
