//! Boots the machine, and waits for its end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::processor::Processor;

/// Size in bytes of the disk for the results.
const RESULTS_BYTES: u64 = 256 << 20;
/// Longest time for all trials, unless `HEAPR_VM_SECONDS` says another.
const SECONDS_MAX: u64 = 3600;

/// Longest time for all trials, in seconds.
pub(super) fn seconds_max() -> u64 {
    std::env::var("HEAPR_VM_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS_MAX)
}

/// Boots the machine. Its messages are printed; `results` then has the trials' files.
pub(super) fn boot(processor: &Processor, folder: &Path) -> anyhow::Result<()> {
    let results_image = folder.join("results.img");
    fs::File::create(&results_image)
        .and_then(|file| file.set_len(RESULTS_BYTES))
        .with_context(|| results_image.display().to_string())?;
    let [emulator, arguments @ ..] = processor.emulator else { bail!("no emulator") };
    // Emulation takes whole processors for a long time: others come first.
    let mut command = Command::new("nice");
    command.args(["-n", "10", emulator]).args(arguments).args([
        "-smp",
        "2",
        "-m",
        "4096",
        "-nographic",
        "-no-reboot",
        "-nodefaults",
    ]);
    command.args(["-serial", "stdio", "-monitor", "none"]);
    command.arg("-kernel").arg(folder.join("vmlinuz")).arg("-initrd").arg(folder.join("initrd"));
    command.arg("-append").arg(format!("console={} quiet panic=-1", processor.console));
    for (name, suffix) in [("root.img", ",snapshot=on"), ("work.img", ",snapshot=on"), ("results.img", "")] {
        let file = folder.join(name);
        let drive = format!("if=none,format=raw,id={name},file={}{suffix}", file.display());
        command.args(["-drive", &drive, "-device", &format!("virtio-blk-pci,drive={name}")]);
    }
    // Some hosts offer an acceleration that Debian's kernel does not run under.
    let accelerator = std::env::var("HEAPR_VM_ACCELERATOR").unwrap_or_else(|_| "tcg".to_owned());
    command.args(["-accel", &accelerator]);
    let begin = Instant::now();
    let mut machine = command.stdin(Stdio::null()).spawn().context(*emulator)?;
    let limit = Duration::from_secs(seconds_max());
    loop {
        if let Some(status) = machine.try_wait().context(*emulator)? {
            if !status.success() {
                bail!("{emulator}: {status}");
            }
            break;
        }
        if begin.elapsed() > limit {
            machine.kill().context(*emulator)?;
            machine.wait().context(*emulator)?;
            bail!("the machine has not ended after {} s (HEAPR_VM_SECONDS)", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("vm {}: ended after {} s", processor.name, begin.elapsed().as_secs());
    let results = folder.join("results");
    if results.exists() {
        fs::remove_dir_all(&results).with_context(|| results.display().to_string())?;
    }
    fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&results_image).arg("-C").arg(&results);
    crate::run(&mut unpack).context("the machine brought no results")
}
