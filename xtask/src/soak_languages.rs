//! Compares cached frames of languages with complete readings: runs the victims that report their
//! blocks again and again, with each stack compared.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Least number of compared stacks with language frames, per language.
const STACKS: u64 = 500_000;

/// Variables of an environment, with their values.
type Environment = &'static [(&'static str, &'static str)];

/// Languages: name of their frames' module, variable that names interpreters, default interpreters,
/// victim, and additions to the environment.
const LANGUAGES: [(&str, &str, &str, &str, Environment); 7] = [
    ("py", "HEAPR_PYTHONS", "/usr/bin/python3", "python/lines.py", &[]),
    ("js", "HEAPR_NODES", "/usr/bin/node", "javascript/lines.js", &[]),
    ("java", "HEAPR_JAVAS", "/usr/bin/java", "java/Lines.java", &[("VICTIM_ROUNDS", "200")]),
    ("rb", "HEAPR_RUBIES", "/usr/bin/ruby", "ruby/lines.rb", &[]),
    ("php", "HEAPR_PHPS", "/usr/bin/php", "php/lines.php", &[("USE_ZEND_ALLOC", "0")]),
    ("pl", "HEAPR_PERLS", "/usr/bin/perl", "perl/lines.pl", &[]),
    (
        "lua",
        "HEAPR_LUAS",
        "/usr/bin/lua5.1:/usr/bin/lua5.3:/usr/bin/lua5.4:/usr/bin/luajit",
        "lua/lines.lua",
        &[],
    ),
];

/// Runs until enough stacks of each language have been compared, and prints a line for each
/// interpreter.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (wanted, only) = match arguments {
        [] => (STACKS, ""),
        [count, rest @ ..] => {
            let wanted = count.parse().with_context(|| format!("{count} is no number of stacks"))?;
            (wanted, rest.first().copied().unwrap_or(""))
        }
    };
    let heapr = match std::env::var_os("HEAPR") {
        Some(heapr) => heapr.into(),
        None => {
            crate::run(crate::cargo().args(["build", "--profile", "quick", "--quiet", "-p", "heapr"]))?;
            crate::check_agent::target_folder()?.join("quick/heapr")
        }
    };
    let mut differing = 0;
    for (module, variable, usual, victim, environment) in LANGUAGES {
        if !only.is_empty() && only != module {
            continue;
        }
        let interpreters = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
        for interpreter in interpreters.split(':').filter(|path| Path::new(path).exists()) {
            let mut sums = [0_u64; 3];
            while sums[0] < wanted {
                let counts = compare(&heapr, interpreter, (module, victim), environment)?;
                ensure!(counts[0] != 0, "{interpreter}: no stack has frames of {module}");
                sums = std::array::from_fn(|index| sums[index] + counts[index]);
            }
            let [stacks, compared, differ] = sums;
            println!(
                "{interpreter}: {stacks} stacks with frames of {module}, {compared} comparisons, {differ} differ"
            );
            differing += differ;
        }
    }
    ensure!(differing == 0, "{differing} kept stacks were not what a whole reading gave");
    Ok(())
}

/// Runs a victim once. Returns the stacks with language frames, the comparisons (of these and of
/// the native frames), and the number of differences.
fn compare(
    heapr: &Path,
    interpreter: &str,
    (module, victim): (&str, &str),
    environment: Environment,
) -> anyhow::Result<[u64; 3]> {
    let folder = tempfile::tempdir()?;
    let (trace, told) = (folder.path().join("t.heapr"), folder.path().join("told"));
    let mut record = Command::new(heapr);
    record.args(["run", "-q", "-o"]).arg(&trace).arg("--").arg(interpreter);
    record.arg(crate::root().join("victims").join(victim)).arg(&told);
    record.env("HEAPR_VERIFY", "1").env("XDG_RUNTIME_DIR", folder.path()).envs(environment.iter().copied());
    crate::run(&mut record)?;
    let answer = |words: &[&str]| -> anyhow::Result<Value> {
        let mut ask = Command::new(heapr);
        ask.arg(words[0]).arg(&trace).args(&words[1..]).args(["--format", "json"]);
        Ok(serde_json::from_str(&crate::output_of(&mut ask)?)?)
    };
    let pattern = format!("{module}!");
    let totals = &answer(&["report", "--totals", "--require-frames", &pattern])?["totals"];
    let statistics = &answer(&["info"])?["statistics"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    Ok([
        number(&totals["alloc_count"]) + number(&totals["realloc_count"]),
        number(&statistics["stacks_verified"]),
        number(&statistics["stacks_verified_mismatches"]),
    ])
}
