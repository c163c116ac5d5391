//! Names of packages, from the texts of paths.

/// Place of a file in a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The path has the name, and the version if there is one.
    Told { name: String, version: Option<String> },
    /// A package of Node, whose folder has a `package.json`.
    Node { folder: String, name: String },
    /// A file of a folder `site-packages` or `dist-packages`, and its path inside.
    Python { folder: String, inside: String },
}

/// Place of a file in a package; `None` if the path is that of none.
pub(super) fn place(path: &str) -> Option<Place> {
    node(path)
        .or_else(|| python(path))
        .or_else(|| cargo(path))
        .or_else(|| gem(path))
        .or_else(|| go(path))
        .or_else(|| composer(path))
}

fn told(name: &str, version: Option<&str>) -> Option<Place> {
    (!name.is_empty()).then(|| Place::Told { name: name.to_owned(), version: version.map(str::to_owned) })
}

/// Part of a path behind the last occurrence of a folder, and the place where it begins.
fn behind<'p>(path: &'p str, folder: &str) -> Option<(usize, &'p str)> {
    let at = path.rfind(folder)? + folder.len();
    Some((at, &path[at..]))
}

fn node(path: &str) -> Option<Place> {
    let (at, inside) = behind(path, "/node_modules/")?;
    let parts = if inside.starts_with('@') { 2 } else { 1 };
    // A file directly in the folder belongs to no package.
    let end = inside.match_indices('/').nth(parts - 1)?.0;
    Some(Place::Node { folder: path[..at + end].to_owned(), name: inside[..end].to_owned() })
}

fn python(path: &str) -> Option<Place> {
    let (at, inside) = behind(path, "/site-packages/").or_else(|| behind(path, "/dist-packages/"))?;
    Some(Place::Python { folder: path[..at - 1].to_owned(), inside: inside.to_owned() })
}

/// Splits `bytes-1.12.2` before the version: the first part that begins with a number, which a dot
/// or the end follows. The `5` of `md-5-0.10.6` belongs to the name.
fn name_and_version(text: &str) -> Option<(&str, &str)> {
    let is_version = |&(at, _): &(usize, &str)| {
        let part = &text[at + 1..];
        let behind = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        behind.len() < part.len() && (behind.is_empty() || behind.starts_with('.'))
    };
    let (at, _) = text.match_indices('-').find(is_version)?;
    Some((&text[..at], &text[at + 1..]))
}

fn cargo(path: &str) -> Option<Place> {
    if let Some((_, inside)) = behind(path, "/registry/src/") {
        let (name, version) = name_and_version(inside.split('/').nth(1)?)?;
        return told(name, Some(version));
    }
    let (_, inside) = behind(path, "/.cargo/git/checkouts/")?;
    let (name, _) = inside.split('/').next()?.rsplit_once('-')?;
    told(name, inside.split('/').nth(1))
}

fn gem(path: &str) -> Option<Place> {
    let (_, inside) = behind(path, "/gems/")?;
    let (name, version) = name_and_version(inside.split('/').next()?)?;
    told(name, Some(version))
}

fn go(path: &str) -> Option<Place> {
    let (_, inside) = behind(path, "/go/pkg/mod/")?;
    let (name, rest) = inside.split_once('@')?;
    told(name, rest.split('/').next())
}

fn composer(path: &str) -> Option<Place> {
    let (_, inside) = path.ends_with(".php").then(|| behind(path, "/vendor/"))??;
    let end = inside.match_indices('/').nth(1)?.0;
    told(&inside[..end], None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_package_managers_tell_names_and_versions() {
        for (path, name, version) in [
            (
                "/root/.cargo/registry/src/index.crates.io-1949cf8c/tracing-subscriber-0.3.18/src/registry/sharded.rs",
                "tracing-subscriber",
                Some("0.3.18"),
            ),
            ("/c/registry/src/index.crates.io-1/md-5-0.10.6/src/lib.rs", "md-5", Some("0.10.6")),
            ("/c/registry/src/index.crates.io-1/sha-1-0.10.1/src/lib.rs", "sha-1", Some("0.10.1")),
            ("/root/.cargo/git/checkouts/moka-0123abcd/4f1c/src/lib.rs", "moka", Some("4f1c")),
            (
                "/var/lib/gems/3.1.0/gems/nokogiri-1.15.4-x86_64-linux/lib/nokogiri.rb",
                "nokogiri",
                Some("1.15.4-x86_64-linux"),
            ),
            (
                "/root/go/pkg/mod/github.com/redis/go-redis/v9@v9.0.5/pool.go",
                "github.com/redis/go-redis/v9",
                Some("v9.0.5"),
            ),
            ("/w/vendor/guzzlehttp/guzzle/src/Client.php", "guzzlehttp/guzzle", None),
        ] {
            assert_eq!(place(path), told(name, version), "{path}");
        }
        let nested = "/w/node_modules/a/node_modules/@b/c/lib/x.js";
        let folder = "/w/node_modules/a/node_modules/@b/c".to_owned();
        assert_eq!(place(nested), Some(Place::Node { folder, name: "@b/c".to_owned() }));
        for path in ["/w/src/main.rs", "/w/gems/ruby.rb", "/w/node_modules/x.js", "", "/w/vendor/x.php"] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
