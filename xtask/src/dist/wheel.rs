//! Makes the wheel: the program as a script, with the Python package.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::payload::Payload;

/// Makes the wheel and returns its path.
pub(crate) fn make(payload: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let version = &payload.version;
    let needs = payload.needs.as_ref().context("a static program has no platform of a wheel")?;
    let tag = format!("py3-none-{}", needs.wheel_platform(payload.architecture));
    let path = folder.join(format!("heapr-{version}-{tag}.whl"));
    let mut wheel = Wheel::create(&path, payload.compression)?;
    let python = crate::root().join("python/heapr");
    let mut modules: Vec<PathBuf> =
        fs::read_dir(&python)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    modules.retain(|module| {
        module.extension().is_some_and(|extension| extension == "py" || extension == "typed")
    });
    modules.sort();
    for module in modules {
        let name = module.file_name().context("a file")?.to_string_lossy().into_owned();
        wheel.add(&format!("heapr/{name}"), &fs::read(&module)?, false)?;
    }
    let program = fs::read(payload.program()).context("the program")?;
    wheel.add(&format!("heapr-{version}.data/scripts/heapr"), &program, true)?;
    let info = format!("heapr-{version}.dist-info");
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENCES.txt"] {
        wheel.add(&format!("{info}/licenses/{name}"), &fs::read(payload.documents().join(name))?, false)?;
    }
    wheel.add(
        &format!("{info}/sboms/heapr.cdx.json"),
        &fs::read(payload.documents().join("heapr.cdx.json"))?,
        false,
    )?;
    let read_me = fs::read_to_string(crate::root().join("python/README.md")).context("python/README.md")?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: heapr\nVersion: {version}\nSummary: records, snapshots and explains the heaps of running programs\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\
         License-File: THIRD-PARTY-LICENCES.txt\nRequires-Python: >=3.8\nProvides-Extra: pytest\nRequires-Dist: pytest>=7; extra == 'pytest'\n\
         Classifier: Framework :: Pytest\nClassifier: Operating System :: POSIX :: Linux\n\
         Description-Content-Type: text/markdown\n\n{read_me}"
    );
    wheel.add(&format!("{info}/METADATA"), metadata.as_bytes(), false)?;
    let about = format!("Wheel-Version: 1.0\nGenerator: heapr's xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    wheel.add(&format!("{info}/WHEEL"), about.as_bytes(), false)?;
    let entries = "[pytest11]\nheapr = heapr.pytest_plugin\n";
    wheel.add(&format!("{info}/entry_points.txt"), entries.as_bytes(), false)?;
    wheel.finish(&format!("{info}/RECORD"))?;
    Ok(path)
}

/// Wheel that is being written.
struct Wheel {
    zip: ZipWriter<File>,
    record: String,
    compression: u32,
}

impl Wheel {
    fn create(path: &Path, compression: u32) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(Self { zip: ZipWriter::new(file), record: String::new(), compression })
    }

    fn add(&mut self, name: &str, content: &[u8], is_program: bool) -> anyhow::Result<()> {
        let sum = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        self.record.push_str(&format!("{name},sha256={sum},{}\n", content.len()));
        self.put(name, content, is_program)
    }

    fn put(&mut self, name: &str, content: &[u8], is_program: bool) -> anyhow::Result<()> {
        // Without times: the same files give the same wheel.
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(self.compression.into()))
            .unix_permissions(if is_program { 0o755 } else { 0o644 });
        self.zip.start_file(name, options)?;
        self.zip.write_all(content)?;
        Ok(())
    }

    fn finish(mut self, name: &str) -> anyhow::Result<()> {
        let record = format!("{}{name},,\n", self.record);
        self.put(name, record.as_bytes(), false)?;
        self.zip.finish()?;
        Ok(())
    }
}
