//! What a server says, and what follows from it.

use std::io;

/// A status, and the beginning of the text that came with it.
pub(super) type Answer = io::Result<(u16, String)>;

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Taken,
    /// It may be taken later.
    Later(String),
    /// It will never be taken.
    Refused(String),
}

impl Outcome {
    pub(super) fn of(url: &str, answer: Answer) -> Self {
        match answer {
            Ok((status, _)) if (200..300).contains(&status) => Self::Taken,
            // What is sent may hold a token, which is for nobody else.
            Ok((status, _)) if (300..400).contains(&status) => Self::Refused(format!(
                "{url} answers {status}: it is at another address; redirects are not followed, give that address"
            )),
            Ok((status, text)) => {
                let said = format!("{url} answers {status}{}{text}", if text.is_empty() { "" } else { ": " });
                if status == 408 || status == 429 || status >= 500 && status != 501 {
                    Self::Later(said)
                } else {
                    Self::Refused(said)
                }
            }
            // What is missing on this machine does not come by itself.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Self::Refused(error.to_string()),
            Err(error) => Self::Later(format!("{url}: {error}")),
        }
    }
}
