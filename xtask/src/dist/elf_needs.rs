//! Reads what a program needs of a machine: libraries, and the least version of the C library.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::architecture::Architecture;

/// Libraries that every glibc system has, as wheels' `manylinux` tags promise.
const EVERYWHERE: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libgcc_s.so.1",
];

/// Needs of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ElfNeeds {
    /// Names of libraries.
    pub(crate) libraries: Vec<String>,
    /// Version of glibc, major and minor.
    pub(crate) glibc: (u32, u32),
}

impl ElfNeeds {
    /// Reads the needs from the program's file.
    pub(crate) fn of(program: &Path, architecture: &Architecture) -> anyhow::Result<Self> {
        let text = crate::output_of(
            Command::new("readelf").args(["--wide", "--dynamic", "--version-info"]).arg(program),
        )?;
        let needs = Self::parse(&text).with_context(|| program.display().to_string())?;
        let is_everywhere =
            |name: &String| name == architecture.loader || EVERYWHERE.contains(&name.as_str());
        if let Some(other) = needs.libraries.iter().find(|name| !is_everywhere(name)) {
            bail!("{} needs {other}, which not every system has", program.display());
        }
        Ok(needs)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let libraries = text.lines().filter(|line| line.contains("(NEEDED)"));
        let libraries =
            libraries.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()));
        let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
            let number = rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
            let mut parts = number.split('.').map(str::parse);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        });
        Ok(Self { libraries: libraries.collect(), glibc: versions.max().context("it needs no glibc")? })
    }

    /// Returns the platform of a wheel that contains the program.
    pub(crate) fn wheel_platform(&self, architecture: &Architecture) -> String {
        format!("manylinux_{}_{}_{}", self.glibc.0, self.glibc.1, architecture.name)
    }
}

#[test]
fn the_newest_version_counts_and_not_the_last() {
    let text = " 0x1 (NEEDED)  Shared library: [libc.so.6]\n  Name: GLIBC_2.34 Flags\n Name: GLIBC_2.4\n Name: GLIBC_2.28\n";
    let needs = ElfNeeds::parse(text).unwrap();
    assert_eq!(needs, ElfNeeds { libraries: vec!["libc.so.6".to_owned()], glibc: (2, 34) });
    let here = Architecture::here().unwrap();
    assert_eq!(needs.wheel_platform(here), format!("manylinux_2_34_{}", here.name));
}
