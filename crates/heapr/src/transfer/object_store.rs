//! Folders in an object store: `s3://BUCKET/PREFIX`, also of compatible stores, and
//! `gs://BUCKET/PREFIX`.
//!
//! Credentials come from the variables that the stores' own tools read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::answer::Outcome;
use super::curl::Request;

/// Number of tries for a file.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// Credentials for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Credentials {
    /// No credentials: the store does not need them.
    None,
    /// Token of an `Authorization: Bearer` header.
    Token(String),
    /// Key that signs requests.
    Key { region: String, key: String, secret: String, token: Option<String> },
}

/// Folder in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectStore {
    /// URL of the folder, with a slash at its end.
    url: String,
    /// Address as the user wrote it.
    name: String,
    credentials: Credentials,
    /// Header by which the store refuses to replace an object.
    only_new: (&'static str, &'static str),
    authority: Option<PathBuf>,
}

impl ObjectStore {
    /// Parses an address; `None` if it is not one of an object store.
    pub(crate) fn of(
        text: &str,
        authority: Option<PathBuf>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Option<Self>> {
        let Some((scheme @ ("s3" | "gs"), rest)) = text.split_once("://") else { return Ok(None) };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        ensure!(!bucket.is_empty() && is_name(bucket), "{text}: a bucket is {scheme}://BUCKET[/FOLDER]");
        let first =
            |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|text| !text.is_empty()));
        let token =
            first(&["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"]).filter(|_| scheme == "gs");
        let region = match scheme {
            "gs" => "auto".to_owned(),
            _ => first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".to_owned()),
        };
        let endpoint = match scheme {
            "gs" => first(&["STORAGE_EMULATOR_HOST"]),
            _ => first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
        };
        let url = match (scheme, endpoint) {
            (_, Some(endpoint)) => format!("{}/{bucket}", endpoint.trim_end_matches('/')),
            ("gs", None) => format!("https://storage.googleapis.com/{bucket}"),
            // The stores' wildcard certificate does not cover bucket names with dots.
            (_, None) if bucket.contains('.') => format!("https://s3.{region}.amazonaws.com/{bucket}"),
            (_, None) => format!("https://{bucket}.s3.{region}.amazonaws.com"),
        };
        let credentials = match (token, first(&["AWS_ACCESS_KEY_ID"]), first(&["AWS_SECRET_ACCESS_KEY"])) {
            (Some(token), ..) => Credentials::Token(token),
            (None, Some(key), Some(secret)) => {
                Credentials::Key { region, key, secret, token: first(&["AWS_SESSION_TOKEN"]) }
            }
            (None, None, None) => Credentials::None,
            _ => bail!("{text}: set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        };
        let prefix = prefix.trim_matches('/');
        let folder = if prefix.is_empty() { String::new() } else { format!("{}/", escaped(prefix)) };
        Ok(Some(Self {
            url: format!("{url}/{folder}"),
            name: text.trim_end_matches('/').to_owned(),
            credentials,
            only_new: if scheme == "gs" {
                ("x-goog-if-generation-match", "0")
            } else {
                ("If-None-Match", "*")
            },
            authority,
        }))
    }

    /// Puts a file under a path below the folder. `sha256`: hash of its contents, in hexadecimal.
    pub(crate) fn put(&self, path: &str, file: &Path, sha256: &str, may_replace: bool) -> anyhow::Result<()> {
        let mut why = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE * (1 << attempt));
            }
            match self.try_put(path, file, sha256, may_replace) {
                Outcome::Taken => return Ok(()),
                Outcome::Refused { status: Some(412), .. } => {
                    bail!("{}/{path} is there already; overwrite it with --force (-f)", self.name)
                }
                Outcome::Refused { status: Some(401 | 403), said } => {
                    let hint = match self.credentials {
                        Credentials::None => {
                            "; no credentials are set (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
                        }
                        _ => "",
                    };
                    bail!("{said}{hint}")
                }
                Outcome::Refused { said, .. } => bail!("{said}"),
                Outcome::Later(said) => why = said,
            }
        }
        Err(anyhow::anyhow!(why)).with_context(|| format!("cannot write {}/{path}", self.name))
    }

    fn try_put(&self, path: &str, file: &Path, sha256: &str, may_replace: bool) -> Outcome {
        let url = format!("{}{}", self.url, escaped(path));
        let mut headers = Vec::new();
        let mut header = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        header("Content-Type", "application/vnd.apache.parquet");
        if !may_replace {
            header(self.only_new.0, self.only_new.1);
        }
        match &self.credentials {
            Credentials::None => {}
            Credentials::Token(token) => header("Authorization", &format!("Bearer {token}")),
            Credentials::Key { token, .. } => {
                header("x-amz-content-sha256", sha256);
                if let Some(token) = token {
                    header("x-amz-security-token", token);
                }
            }
        }
        let request = Request::put(&url, &headers, file, self.authority.as_deref());
        let request = match &self.credentials {
            Credentials::Key { region, key, secret, .. } => request.signed(region, key, secret),
            _ => request,
        };
        Outcome::of(&url, request.run())
    }
}

/// Escapes in a path all bytes that must not appear in a URL.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(text: &str, variables: &[(&str, &str)]) -> anyhow::Result<Option<ObjectStore>> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ObjectStore::of(text, None, &variable)
    }

    #[test]
    fn addresses_of_stores_are_those_of_their_own_tools() {
        let url = |text: &str, variables: &[(&str, &str)]| store(text, variables).unwrap().unwrap().url;
        assert_eq!(url("s3://heaps", &[]), "https://heaps.s3.us-east-1.amazonaws.com/");
        assert_eq!(
            url("s3://a.b/day one/", &[("AWS_REGION", "eu-west-1")]),
            "https://s3.eu-west-1.amazonaws.com/a.b/day%20one/"
        );
        assert_eq!(url("s3://b/x", &[("AWS_ENDPOINT_URL", "http://minio:9000/")]), "http://minio:9000/b/x/");
        assert_eq!(url("gs://b/x", &[]), "https://storage.googleapis.com/b/x/");
        assert!(store("/tmp/tables", &[]).unwrap().is_none());
        assert!(store("s3:///x", &[]).is_err() && store("s3://a\"b", &[]).is_err());
    }

    #[test]
    fn half_a_key_is_none() {
        assert!(store("s3://b", &[("AWS_ACCESS_KEY_ID", "k")]).is_err());
        let whole = store("s3://b", &[("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")]);
        assert!(matches!(whole.unwrap().unwrap().credentials, Credentials::Key { .. }));
        let token = store("gs://b", &[("GOOGLE_OAUTH_ACCESS_TOKEN", "t"), ("AWS_ACCESS_KEY_ID", "k")]);
        assert_eq!(token.unwrap().unwrap().credentials, Credentials::Token("t".to_owned()));
    }
}
