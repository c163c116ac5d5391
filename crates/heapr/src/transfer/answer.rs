//! Answers of servers, and what follows from them.

use std::io;

/// Status, and the beginning of the answer's text.
pub(super) type Answer = io::Result<(u16, String)>;

/// Outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Taken,
    /// Refused for the moment: it can be retried later.
    Later(String),
    /// Refused for good; `status` is the server's, if it answered.
    Refused {
        status: Option<u16>,
        said: String,
    },
}

impl Outcome {
    pub(super) fn of(url: &str, answer: Answer) -> Self {
        match answer {
            Ok((status, _)) if (200..300).contains(&status) => Self::Taken,
            // The request may hold a token, which another server must not see.
            Ok((status, _)) if (300..400).contains(&status) => Self::Refused {
                status: Some(status),
                said: format!(
                    "{url} answers {status}: it is at another address; redirects are not followed, give that address"
                ),
            },
            Ok((status, text)) => {
                let said = format!("{url} answers {status}{}{text}", if text.is_empty() { "" } else { ": " });
                if status == 408 || status == 429 || status >= 500 && status != 501 {
                    Self::Later(said)
                } else {
                    Self::Refused { status: Some(status), said }
                }
            }
            // A retry does not install what is missing on this machine.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                Self::Refused { status: None, said: error.to_string() }
            }
            Err(error) => Self::Later(format!("{url}: {error}")),
        }
    }
}
