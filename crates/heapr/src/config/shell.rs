//! `heapr config shell`: the environment in which a user's own flagged programs are traced from
//! their first instruction.

use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use anyhow::Context as _;
use heapr_session::shell_environment;

/// Form of the printed environment.
#[derive(Debug, clap::Args)]
pub(crate) struct ShellArguments {
    /// Program that reads it
    #[arg(long = "for", value_enum, default_value_t = Reader::Sh)]
    reader: Reader,
    /// Print the lines that undo it
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reader {
    /// sh, bash, zsh and their kin
    Sh,
    /// The fish shell
    Fish,
    /// A file in ~/.config/environment.d, or the [Service] of a user unit's drop-in
    Systemd,
}

const LOOK: &str = "flagged programs that this shell starts are traced from their first instruction\n";

pub(super) fn run(arguments: &ShellArguments) -> anyhow::Result<ExitCode> {
    let variables = shell_environment()?;
    let mut text = match (arguments.reader, arguments.off) {
        (Reader::Sh, false) => {
            format!("# {LOOK}# in ~/.profile or ~/.bashrc:  eval \"$(heapr config shell)\"\n")
        }
        (Reader::Fish, false) => {
            format!("# {LOOK}# in ~/.config/fish/config.fish:  heapr config shell --for fish | source\n")
        }
        (Reader::Systemd, false) => format!(
            "# {LOOK}# for all units of this user, at the next login: heapr config shell --for systemd > \
             ~/.config/environment.d/heapr.conf\n# at once: systemctl --user import-environment LD_PRELOAD \
             HEAPR_FLAGGED, in a shell that has them\n"
        ),
        (_, true) => String::new(),
    };
    for (name, value) in variables {
        // An existing value is extended.
        let value = value.as_bytes();
        let rest = value.split(|&byte| byte == b':').skip(1).collect::<Vec<_>>().join(&b':');
        let value = if arguments.off && name == "LD_PRELOAD" { &rest[..] } else { value };
        let value = std::str::from_utf8(value).with_context(|| format!("{name} is not UTF-8"))?;
        let is_gone = arguments.off && (name != "LD_PRELOAD" || value.is_empty());
        text += &match (arguments.reader, is_gone) {
            (Reader::Sh, false) => format!("export {name}={}\n", quoted(value, "'\\''")),
            (Reader::Sh, true) => format!("unset {name}\n"),
            (Reader::Fish, false) => format!("set -gx {name} {}\n", quoted(value, "\\'")),
            (Reader::Fish, true) => format!("set -e {name}\n"),
            (Reader::Systemd, false) => {
                format!("{name}=\"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\""))
            }
            (Reader::Systemd, true) => format!("# without {name}\n"),
        };
    }
    super::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a text in single quotes; a quote within it becomes `quote`.
fn quoted(value: &str, quote: &str) -> String {
    format!("'{}'", value.replace('\'', quote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_path_stays_one() {
        assert_eq!(quoted("/a b/c", "'\\''"), "'/a b/c'");
        assert_eq!(quoted("/it's", "'\\''"), r"'/it'\''s'");
    }
}
