//! `heapr info`: the contents of a trace.

mod command;
mod json;
mod text;

pub(crate) use command::{InfoArguments, run};

use heapr_trace::ChunkKind;

/// Returns the name of a chunk's kind, as the description of the format has it.
pub(crate) fn kind_name(kind: Option<ChunkKind>) -> String {
    let Some(kind) = kind else { return "unknown".to_owned() };
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// End of a process, from its raw wait status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By exit, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Decodes a raw wait status. In wait(2) the low seven bits are the signal, the next byte the exit
/// status.
pub(crate) fn end_of(wait_status: i32) -> End {
    match wait_status & 0x7f {
        0 => End::Exited(wait_status >> 8 & 0xff),
        signal => End::Killed(signal),
    }
}

/// Formats a build-id in hexadecimal, as tools write it.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_tells_exit_from_signal() {
        assert_eq!(end_of(0), End::Exited(0));
        assert_eq!(end_of(7 << 8), End::Exited(7));
        assert_eq!(end_of(9), End::Killed(9));
        // Bit 0x80: a core was dumped.
        assert_eq!(end_of(0x80 | 6), End::Killed(6));
    }

    #[test]
    fn kinds_are_named_as_the_format_names_them() {
        assert_eq!(kind_name(Some(ChunkKind::RssSamples)), "rss_samples");
        assert_eq!(kind_name(Some(ChunkKind::Events)), "events");
        assert_eq!(kind_name(None), "unknown");
    }

    #[test]
    fn a_build_id_is_lower_case_hexadecimal() {
        assert_eq!(hexadecimal(&[0x0a, 0xff]), "0aff");
    }
}
