//! Access control.

use crate::made::{Running, write_trace};

fn running() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.heapr");
    write_trace(&path, 10);
    let running = Running::start(&[path]);
    (folder, running)
}

#[test]
fn without_the_token_there_is_the_page_but_no_answer() {
    let (_folder, server) = running();
    let page = server.request("GET", "/", &[], "");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    assert!(page.head.contains("x-content-type-options: nosniff"));
    assert_eq!(server.request("GET", "/api/files", &[], "").status, 401);
    let wrong = [("Authorization", "Bearer 00000000000000000000000000000000")];
    let reply = server.request("GET", "/api/files", &wrong, "");
    assert_eq!(reply.status, 401);
    assert!(reply.json()["error"].as_str().unwrap().contains("token"), "{reply:?}");
    assert_eq!(server.request("GET", "/?token=nonsense", &[], "").status, 401);
    assert_eq!(server.file()["state"], "ready");
}

#[test]
fn the_printed_address_gives_a_cookie_and_two_browsers_may_have_it() {
    let (_folder, server) = running();
    let opened = server.request("GET", &format!("/?token={}", server.token), &[], "");
    assert_eq!(opened.status, 303);
    assert!(
        opened.head.contains("location: /") && opened.head.contains("httponly; samesite=strict"),
        "{}",
        opened.head
    );
    let cookie = format!("heapr-{}={}", server.port, server.token);
    for browser in ["one", "two"] {
        let headers = [("Cookie", cookie.as_str()), ("User-Agent", browser)];
        assert_eq!(server.request("GET", "/api/files", &headers, "").status, 200);
    }
    let other_port = format!("heapr-{}={}", server.port.wrapping_add(1), server.token);
    assert_eq!(server.request("GET", "/api/files", &[("Cookie", &other_port)], "").status, 401);
}

#[test]
fn a_foreign_host_or_origin_is_refused_even_with_the_token() {
    let (_folder, server) = running();
    let bearer = format!("Bearer {}", server.token);
    let token = ("Authorization", bearer.as_str());
    assert_eq!(server.request("GET", "/api/files", &[token, ("Host", "evil.example")], "").status, 421);
    assert_eq!(server.request("GET", "/", &[("Host", "evil.example")], "").status, 421);
    assert_eq!(
        server.request("GET", "/api/files", &[token, ("Origin", "http://evil.example")], "").status,
        403
    );
    let own = format!("http://localhost:{}", server.port);
    assert_eq!(server.request("GET", "/api/files", &[token, ("Origin", &own)], "").status, 200);
    // A request that a form of another site could send.
    let form = [token, ("Content-Type", "text/plain")];
    assert_eq!(server.request("POST", "/api/report", &form, "{\"file\":0}").status, 400);
}

#[test]
fn nonsense_is_refused_and_the_server_lives_on() {
    let (_folder, server) = running();
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n",
    ] {
        let mut half = bytes.to_vec();
        if bytes == b"GET" {
            half.extend(b" /\xff\xfe HTTP/9.9\r\n\r\n");
        }
        assert!(server.send(&half).status >= 400, "{bytes:?}");
    }
    assert_eq!(server.ask("report", &" ".repeat(2 << 20)).status, 413);
    for (name, body, word) in [
        ("report", "{", "can't be read"),
        ("report", "{\"file\":0,\"sord\":\"so\"}", "sord"),
        ("report", "{\"file\":0,\"sort\":\"so2\"}", "no sort key"),
        ("flame", "{\"file\":0,\"value\":\"x\"}", "no value"),
        ("timeline", "{\"file\":0,\"bins\":0}", "bins"),
        ("timeline", "{\"file\":0,\"bins\":999999999}", "bins"),
        ("timeline", "{\"file\":0,\"from_ns\":5,\"to_ns\":5}", "empty"),
        ("report", "{\"file\":0,\"filter\":{\"range\":[\"a\",\"2\"]}}", "no time"),
        ("report", "{\"file\":0,\"filter\":{\"range\":[\"2ns\",\"2ns\"]}}", "empty"),
        ("snapshot/summary", "{\"file\":0}", "no snapshot"),
    ] {
        let reply = server.ask(name, body);
        assert_eq!(reply.status, 400, "{name} {body}");
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(word), "{name} {body}: {error}");
    }
    for (name, body) in [
        ("stack", "{\"file\":0,\"id\":\"s9999999.4\"}"),
        ("stack", "{\"file\":0,\"id\":\"s1.4294967295\"}"),
        ("stack", "{\"file\":0,\"id\":\"x\"}"),
        ("flame", "{\"file\":0,\"root\":\"n4294967295.0\"}"),
        ("flame", "{\"file\":0,\"root\":\"n7.4294967295\",\"direction\":\"bottom-up\"}"),
        ("frame", "{\"file\":0,\"frame\":\"nobody\"}"),
        ("report", "{\"file\":1}"),
        ("nothing", "{}"),
    ] {
        assert_eq!(server.ask(name, body).status, 404, "{name} {body}");
    }
    assert_eq!(server.file()["state"], "ready");
}
