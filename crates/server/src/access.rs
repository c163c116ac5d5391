//! Access control: the host and origin that a request names, and its token.
//!
//! A page of another site can send requests here, though not read the answers. A site whose name is
//! made to resolve to 127.0.0.1 could even read them. Therefore the `Host` must be the server's
//! own, and the `Origin` too if it is given. The token must come in a header, or in a cookie that
//! other sites' requests do not carry.

use axum::http::{HeaderMap, StatusCode, header};

use crate::token::Token;

/// The server's port and its secret.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) port: u16,
    pub(crate) token: Token,
}

impl Access {
    /// Name of the cookie. It contains the port, as browsers share a host's cookies among its
    /// ports.
    pub(crate) fn cookie_name(&self) -> String {
        format!("heapr-{}", self.port)
    }

    fn hosts(&self) -> [String; 2] {
        [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)]
    }

    /// Refuses requests to another host name or from another site's page.
    pub(crate) fn check_site(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let hosts = self.hosts();
        let mut given_hosts = headers.get_all(header::HOST).iter();
        let is_own_host = given_hosts
            .next()
            .and_then(|host| host.to_str().ok())
            .is_some_and(|host| hosts.iter().any(|own| own == host));
        if !is_own_host || given_hosts.next().is_some() {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "the request is for another host: use the address that heapr view has printed",
            ));
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = text(header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| hosts.iter().any(|own| own == origin)) {
                return Err((StatusCode::FORBIDDEN, "the request comes from another site's page"));
            }
        }
        Ok(())
    }

    /// Refuses requests without the token.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let bearer = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let name = self.cookie_name();
        let has_cookie = || {
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).any(|cookies| {
                cookies
                    .split(';')
                    .filter_map(|cookie| cookie.trim().split_once('='))
                    .any(|(key, value)| key == name && self.token.is(value))
            })
        };
        if bearer.is_some_and(|token| self.token.is(token)) || has_cookie() {
            Ok(())
        } else {
            Err((
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: open the address that heapr view has printed (each start has its own)",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_the_own_host_and_origin_are_let_in() {
        let access = Access { port: 4711, token: Token::random().unwrap() };
        let status = |list: &[(&'static str, &str)]| {
            access.check_site(&headers(list)).map_err(|(status, _)| status.as_u16())
        };
        assert_eq!(status(&[("host", "127.0.0.1:4711")]), Ok(()));
        assert_eq!(status(&[("host", "localhost:4711"), ("origin", "http://localhost:4711")]), Ok(()));
        for host in ["evil.example:4711", "127.0.0.1", "127.0.0.1:4712", "127.0.0.1.evil.example:4711", ""] {
            assert_eq!(status(&[("host", host)]), Err(421), "{host}");
        }
        assert_eq!(status(&[]), Err(421));
        for origin in
            ["http://evil.example", "https://127.0.0.1:4711", "null", "http://127.0.0.1:4711.evil.example"]
        {
            assert_eq!(status(&[("host", "127.0.0.1:4711"), ("origin", origin)]), Err(403), "{origin}");
        }
    }

    #[test]
    fn the_token_may_come_in_a_header_or_in_the_cookie_of_this_port() {
        let access = Access { port: 4711, token: Token::random().unwrap() };
        let token = access.token.as_str();
        let is_in =
            |name: &'static str, value: String| access.check_token(&headers(&[(name, &value)])).is_ok();
        assert!(is_in("authorization", format!("Bearer {token}")));
        assert!(is_in("cookie", format!("a=b; heapr-4711={token}; c=d")));
        assert!(!is_in("cookie", format!("heapr-4712={token}")));
        assert!(!is_in("cookie", format!("heapr-4711={}", &token[1..])));
        assert!(!is_in("authorization", token.to_owned()));
    }
}
