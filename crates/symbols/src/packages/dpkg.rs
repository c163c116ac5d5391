//! Packages of Debian and its like: `/var/lib/dpkg`.

use std::path::Path;

use super::joined;

const DPKG: &str = "/var/lib/dpkg";
/// Largest size in bytes of a list of files, and of the list of packages.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// Folders whose files belong to packages of the system.
const FOLDERS: &[&str] = &["/usr/", "/lib", "/bin/", "/sbin/", "/opt/"];

/// Name and version of the installed package that has a file.
pub(super) fn name(file: &str) -> Option<String> {
    let is_of_system =
        FOLDERS.iter().any(|folder| file.starts_with(folder)) && !file.starts_with("/usr/local/");
    if !is_of_system || !Path::new(file).exists() {
        return None;
    }
    let package = owner(Path::new(DPKG), file)?;
    Some(joined(&package, version(Path::new(DPKG), &package).as_deref()))
}

/// Package whose list has the file. `/lib` may be a link to `/usr/lib`, and packages name their
/// files in either way.
fn owner(dpkg: &Path, file: &str) -> Option<String> {
    let in_usr = format!("/usr{file}");
    let names = [Some(file), file.strip_prefix("/usr"), Some(in_usr.as_str())];
    let lists = std::fs::read_dir(dpkg.join("info")).ok()?;
    lists.filter_map(Result::ok).map(|entry| entry.path()).find_map(|path| {
        let stem = path.file_name()?.to_str()?.strip_suffix(".list")?;
        let text = heapr_files::read_text(&path, LIST_BYTES_MAX).ok()?;
        let has_name = names.iter().flatten().any(|name| has_line(&text, name));
        has_name.then(|| stem.split(':').next().unwrap_or(stem).to_owned())
    })
}

fn has_line(text: &str, line: &str) -> bool {
    memchr::memmem::find_iter(text.as_bytes(), line.as_bytes()).any(|at| {
        let (before, after) = (&text.as_bytes()[..at], &text.as_bytes()[at + line.len()..]);
        before.last().is_none_or(|&byte| byte == b'\n') && after.first().is_none_or(|&byte| byte == b'\n')
    })
}

fn version(dpkg: &Path, package: &str) -> Option<String> {
    let text = heapr_files::read_text(&dpkg.join("status"), LIST_BYTES_MAX).ok()?;
    let is_it =
        |part: &&str| part.lines().next().and_then(|line| line.strip_prefix("Package: ")) == Some(package);
    let part = text.split("\n\n").find(is_it)?;
    part.lines().find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_its_list_and_only_by_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("info")).unwrap();
        std::fs::write(
            folder.path().join("info/zlib1g:amd64.list"),
            "/.\n/lib/libz.so.1.2.13\n/lib/libz.so.1\n/usr/lib/libxml2.so.2\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("status"),
            "Package: a\nVersion: 1\n\nPackage: zlib1g\nVersion: 1:1.2.13\n",
        )
        .unwrap();
        assert_eq!(owner(folder.path(), "/usr/lib/libz.so.1.2.13").as_deref(), Some("zlib1g"));
        assert_eq!(owner(folder.path(), "/lib/libz.so.1").as_deref(), Some("zlib1g"));
        assert_eq!(owner(folder.path(), "/lib/libxml2.so.2").as_deref(), Some("zlib1g"));
        assert_eq!(owner(folder.path(), "/usr/lib/libz.so.1.2"), None);
        assert_eq!(version(folder.path(), "zlib1g").as_deref(), Some("1:1.2.13"));
        assert_eq!(version(folder.path(), "zlib"), None);
    }
}
