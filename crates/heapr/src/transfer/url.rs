//! Addresses to which requests are sent.

use anyhow::{Context as _, bail, ensure};

/// HTTP or HTTPS address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Path without a slash at its end.
    pub(super) path: String,
}

impl Url {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let (is_secure, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => bail!("{text} is no address: http[s]://HOST[:PORT][/PATH]"),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().with_context(|| format!("{text}: {port} is no port"))?)
            }
            _ => (authority, if is_secure { 443 } else { 80 }),
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        ensure!(!host.is_empty() && !host.contains('@') && is_plain(rest), "{text} is no address");
        Ok(Self { is_secure, host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }

    /// Whether the address is reached by TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    pub(crate) fn join(&self, path: &str) -> Self {
        Self { path: format!("{}{path}", self.path), ..self.clone() }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let url = |text| Url::parse(text).map(|url| url.join("/x").to_string());
        assert_eq!(url("http://a").unwrap(), "http://a:80/x");
        assert_eq!(url("https://a").unwrap(), "https://a:443/x");
        assert_eq!(url("http://127.0.0.1:4040/p/").unwrap(), "http://127.0.0.1:4040/p/x");
        assert_eq!(url("http://[::1]:99").unwrap(), "http://[::1]:99/x");
        for wrong in ["a:1", "http://", "http://a:b", "http://u@h", "http://a b", "ftp://a", "http://a\"b"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
