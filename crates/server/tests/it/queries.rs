//! Answers to queries, over the socket.

use serde_json::Value;

use crate::made::{MARKUP, Running, write_totals, write_trace};

fn running(count: u64) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a trace.heapr");
    write_trace(&path, count);
    let running = Running::start(&[path]);
    (folder, running)
}

fn sum(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn all_views_of_a_filter_agree() {
    let (_folder, server) = running(1000);
    for filter in ["{}", "{\"range\":[\"1000ns\",\"5000ns\"]}"] {
        let ask = |name: &str, more: &str| {
            let reply = server.ask(name, &format!("{{\"file\":0,\"filter\":{filter}{more}}}"));
            assert_eq!(reply.status, 200, "{name}: {}", String::from_utf8_lossy(&reply.body));
            reply.json()
        };
        let report = ask("report", ",\"sort\":\"st\"");
        let total = report["totals"]["alloc_bytes"].as_u64().unwrap();
        assert_eq!(total, if filter == "{}" { 100_000 } else { 40_000 });
        assert_eq!(report["all"]["total_bytes"], total);
        assert_eq!(report["group_count"], 2);
        assert!(report["command"].as_str().unwrap().starts_with("heapr report '"), "{}", report["command"]);
        for of in ["own", "innermost"] {
            let functions = ask("own-functions", &format!(",\"of\":\"{of}\",\"sort\":\"st\""));
            let rows = functions["own_functions"].as_array().unwrap();
            let sums = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
            assert_eq!((sums("total_bytes"), sums("stack_count")), (total, 2), "{functions}");
            let stack = ask("stack", &format!(",\"id\":{}", rows[0]["stack"]));
            assert!(!stack["frames"].as_array().unwrap().is_empty());
        }
        for direction in ["top-down", "bottom-up"] {
            let flame = ask("flame", &format!(",\"value\":\"total_bytes\",\"direction\":\"{direction}\""));
            assert_eq!(flame["total"], total);
            assert_eq!(sum(&flame["nodes"]["self"]), total);
        }
        let histograms = ask("histograms", "");
        let buckets = histograms["histograms"][0]["buckets"].as_array().unwrap();
        assert_eq!(buckets.iter().map(|bucket| bucket["total_bytes"].as_u64().unwrap()).sum::<u64>(), total);
        let types = ask("types", "");
        let inside: u64 =
            types["types"].as_array().unwrap()[..2].iter().map(|one| one["bytes"].as_u64().unwrap()).sum();
        assert_eq!(inside, total);
        let leaks = ask("leaks", "");
        assert_eq!(leaks["matched"]["outstanding_bytes"], report["totals"]["outstanding_bytes"]);
        let frame = ask("frame", ",\"frame\":\"f0\"");
        assert_eq!(frame["inclusive"]["total_bytes"], total);
        assert_eq!(frame["callees"].as_array().unwrap().len(), 2);
        let timeline = ask("timeline", ",\"bins\":10,\"by\":\"stack\"");
        assert_eq!(sum(&timeline["alloc_bytes"]), 100_000, "the range does not cut the timeline");
        let id = &report["groups"][0]["id"];
        let stack = ask("stack", &format!(",\"id\":{id}"));
        assert_eq!(stack["frames"].as_array().unwrap().len(), 2);
        let export = |to: &str| {
            let body = format!("{{\"file\":0,\"filter\":{filter},\"to\":\"{to}\",\"value\":\"st\"}}");
            let reply = server.ask("export", &body);
            assert_eq!(reply.status, 200, "{to}: {}", String::from_utf8_lossy(&reply.body));
            reply
        };
        let collapsed = String::from_utf8(export("collapsed").body).unwrap();
        let amounts = collapsed.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        assert_eq!(amounts.sum::<u64>(), total, "{collapsed}");
        assert_eq!(export("json").json()["totals"]["alloc_bytes"], total);
        let table = ",\"to\":\"csv\",\"by\":\"frames\",\"sort\":\"st\"";
        let reply = server.ask("export", &format!("{{\"file\":0,\"filter\":{filter}{table}}}"));
        assert!(String::from_utf8(reply.body).unwrap().contains("\nframes,st,1,"), "{}", reply.status);
        for to in ["pprof", "speedscope", "flamegraph", "csv"] {
            assert!(!export(to).body.is_empty());
        }
    }
}

#[test]
fn of_a_trace_without_events_nothing_is_said_that_only_events_tell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("totals.heapr");
    write_totals(&path, 1000);
    let server = Running::start(&[path]);
    let ask = |name: &str, filter: &str, more: &str| {
        server.ask(name, &format!("{{\"file\":0,\"filter\":{filter}{more}}}"))
    };
    let report = ask("report", "{}", "").json();
    assert_eq!(report["totals"]["alloc_bytes"], 100_000);
    assert_eq!(report["totals"]["outstanding_bytes"], 50_000);
    let timeline = ask("timeline", "{}", "").json();
    assert!(timeline["note"].as_str().unwrap().contains("without events") && timeline["peak"].is_null());
    let leaks = ask("leaks", "{}", "").json();
    let leak = &leaks["groups"][0];
    assert_eq!((&leak["outstanding_bytes"], &leak["oldest_ns"]), (&50_000.into(), &Value::Null), "{leak}");
    for (name, filter, more) in [
        ("report", "{\"range\":[\"0ns\",\"5000ns\"]}", ""),
        ("report", "{}", ",\"by\":\"by-thread\""),
        ("flame", "{\"range\":[\"0ns\",\"5000ns\"]}", ""),
        ("histograms", "{}", ""),
    ] {
        let reply = ask(name, filter, more);
        let said = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(reply.status == 400 && said.contains("the trace has no events"), "{name}: {said}");
    }
}

#[test]
fn two_moments_of_a_file_are_compared() {
    let (_folder, server) = running(1000);
    let side = |to: u32| format!("{{\"file\":0,\"filter\":{{\"range\":[\"0ns\",\"{to}ns\"]}}}}");
    let body = format!("{{\"before\":{},\"after\":{},\"sort\":\"st\"}}", side(1000), side(3000));
    let diff = server.ask("diff", &body).json();
    assert_eq!(diff["before"]["total_bytes"], 9_900);
    assert_eq!(diff["after"]["total_bytes"], 29_900);
    let deltas: i64 =
        diff["groups"].as_array().unwrap().iter().map(|group| group["delta"].as_i64().unwrap()).sum();
    assert_eq!(deltas, 20_000);
    // Stacks do not differ in an amount that is 0 everywhere.
    for (same, count) in [(false, 0), (true, 2)] {
        let body = format!(
            "{{\"before\":{},\"after\":{},\"sort\":\"src\",\"same\":{same}}}",
            side(1000),
            side(3000)
        );
        let diff = server.ask("diff", &body).json();
        assert_eq!((&diff["group_count"], &diff["match_count"]), (&count.into(), &count.into()), "{diff}");
    }
    for direction in ["top-down", "bottom-up"] {
        let body = format!(
            "{{\"before\":{},\"after\":{},\"value\":\"total_bytes\",\"direction\":\"{direction}\",\"collapse_recursion\":true}}",
            side(1000),
            side(3000)
        );
        let flame = server.ask("diff-flame", &body).json();
        assert_eq!((&flame["before"], &flame["after"]), (&9_900.into(), &29_900.into()), "{flame}");
        let node = |column: &str, at: usize| flame["nodes"][column][at].as_u64().unwrap();
        assert_eq!((node("before", 0), node("after", 0)), (9_900, 29_900));
    }
}

#[test]
fn markup_in_a_symbol_is_text_in_json() {
    let (_folder, server) = running(10);
    let reply = server.ask("report", "{\"file\":0,\"match\":\"onerror\"}");
    assert!(reply.head.contains("content-type: application/json") && reply.head.contains("nosniff"));
    let report = reply.json();
    assert_eq!(report["match_count"], 1);
    assert_eq!(report["groups"][0]["frames"][0]["symbol"], MARKUP);
}

#[test]
fn a_query_whose_client_goes_leaves_the_server_as_it_was() {
    let (_folder, server) = running(1000);
    for _ in 0..20 {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let body = "{\"file\":0,\"by\":\"stack\",\"bins\":20000}";
        let head = format!(
            "POST /api/timeline HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            server.port,
            server.token,
            body.len()
        );
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    }
    assert_eq!(server.ask("report", "{\"file\":0}").status, 200);
}

#[test]
fn several_requests_at_once_get_what_each_gets_alone() {
    let (_folder, server) = running(500);
    let bodies = [
        ("report", "{\"file\":0,\"filter\":{\"range\":[\"10ns\",\"900ns\"]}}"),
        ("flame", "{\"file\":0}"),
        ("types", "{\"file\":0,\"filter\":{\"range\":[\"10ns\",\"900ns\"]}}"),
        ("report", "{\"file\":9}"),
        ("panels", "{\"requests\":[]}"),
        ("session/stop", "{\"file\":0}"),
    ];
    let requests: Vec<String> =
        bodies.iter().map(|(path, body)| format!("{{\"path\":\"{path}\",\"body\":{body}}}")).collect();
    let reply = server.ask("panels", &format!("{{\"requests\":[{}]}}", requests.join(",")));
    assert_eq!(reply.status, 200);
    let answers = reply.json()["answers"].clone();
    for (number, (path, body)) in bodies[..4].iter().enumerate() {
        let alone = server.ask(path, body);
        assert_eq!(answers[number]["status"], alone.status);
        assert_eq!(answers[number]["answer"], alone.json(), "{path}");
    }
    for refused in [4, 5] {
        assert_eq!(answers[refused]["status"], 400);
        assert!(answers[refused]["answer"]["error"].as_str().unwrap().contains("goes alone"));
    }
    let many = vec!["{\"path\":\"flame\"}"; 33].join(",");
    assert_eq!(server.ask("panels", &format!("{{\"requests\":[{many}]}}")).status, 400);
}

#[test]
fn two_browsers_at_once_get_the_same_answers() {
    let (_folder, server) = running(2000);
    let expected = server.ask("report", "{\"file\":0,\"filter\":{\"range\":[\"0ns\",\"8991ns\"]}}").json();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..20 {
                    let body = format!(
                        "{{\"file\":0,\"filter\":{{\"range\":[\"0ns\",\"{}ns\"]}}}}",
                        8991 + round % 4
                    );
                    let answer = server.ask("report", &body).json();
                    assert_eq!(answer["totals"], expected["totals"], "{body}");
                }
            });
        }
    });
}

#[test]
fn types_are_what_each_type_alone_counts() {
    let (_folder, server) = running(1000);
    let types = server.ask("types", "{\"file\":0,\"filter\":{\"range\":[\"2003ns\",\"7000ns\"]}}").json();
    let count = |number: usize| types["types"][number]["count"].as_u64().unwrap();
    // Allocations are at 10 n + 10, and each odd one is freed 5 ns later. Freed inside: the odd
    // ones among 200..699, and none across the start. Older and not freed: the even ones before.
    let births = 200..699_u64;
    let odd = births.clone().filter(|number| number % 2 == 1).count() as u64;
    assert_eq!([count(0), count(1)], [odd, births.count() as u64 - odd]);
    assert_eq!([count(2), count(3)], [1, 100], "number 199 is freed at 2005");
}

#[test]
fn a_difference_has_a_focus_and_says_which_frame_is_not_there() {
    let (_folder, server) = running(100);
    let sides = "\"before\":{\"file\":0,\"filter\":{\"range\":[\"0ns\",\"300ns\"]}},\"after\":{\"file\":0},\"value\":\"total_bytes\"";
    for direction in ["top-down", "bottom-up"] {
        let ask = |focus: &str| {
            server.ask(
                "diff-flame",
                &format!("{{{sides},\"direction\":\"{direction}\",\"focus\":\"{focus}\"}}"),
            )
        };
        let flame = ask("app!f1").json();
        assert_eq!([&flame["before"], &flame["after"]], [1500, 5000], "{flame}");
        let id = flame["frames"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(ask(&id).json()["after"], flame["after"]);
        assert_eq!(ask("nothing").status, 404);
    }
}

#[test]
fn leaks_are_listed_in_any_order_both_ways() {
    let (_folder, server) = running(1000);
    let ids = |body: &str| -> Vec<String> {
        let reply = server.ask("leaks", body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let groups = reply.json()["groups"].as_array().unwrap().clone();
        groups.iter().map(|group| group["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(r#"{"file":0}"#);
    assert!(!all.is_empty());
    for order in ["bytes", "count", "unfreed", "mean_age", "oldest", "newest"] {
        let mut down = ids(&format!(r#"{{"file":0,"sort":"{order}"}}"#));
        let up = ids(&format!(r#"{{"file":0,"sort":"{order}","descending":false}}"#));
        assert!(down.iter().eq(up.iter().rev()), "{order}");
        down.sort();
        let mut same = all.clone();
        same.sort();
        assert_eq!(down, same, "{order}");
    }
    assert_eq!(server.ask("leaks", r#"{"file":0,"sort":"colour"}"#).status, 400);
}

#[test]
fn all_memory_at_a_moment_is_in_one_piece_each() {
    let (_folder, server) = running(1000);
    for filter in ["{}", "{\"at\":\"5000ns\"}"] {
        let told = server.ask("where", &format!("{{\"file\":0,\"filter\":{filter}}}")).json();
        let at = if filter == "{}" { "{\"at\":\"peak\"}" } else { filter };
        let report = server.ask("report", &format!("{{\"file\":0,\"filter\":{at}}}")).json();
        let pieces = told["pieces"].as_array().unwrap();
        let sum = pieces.iter().map(|piece| piece["bytes"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(told["whole_bytes"], sum, "{told}");
        assert_eq!(told["live_bytes"], report["totals"]["outstanding_bytes"], "{filter}");
        let blocks = pieces.iter().filter_map(|piece| piece["block_count"].as_u64()).sum::<u64>();
        assert_eq!(told["live_count"], blocks);
        assert_eq!(told["rss_bytes"], Value::Null, "no reading is not 0");
        assert!(told["not_told"][0].as_str().unwrap().contains("how much is resident"), "{told}");
        assert!(told["command"].as_str().unwrap().contains(" --where"), "{told}");
    }
    let refused = server.ask("where", "{\"file\":0,\"filter\":{\"size\":[\"1\",\"2\"]}}");
    assert_eq!(refused.status, 400);
}

#[test]
fn blocks_are_examples_of_what_lives_and_builds_are_compared_by_function() {
    let (_folder, server) = running(1000);
    let examples = server.ask("examples", "{\"file\":0}").json();
    let blocks = examples["blocks"].as_array().unwrap();
    assert!(!blocks.is_empty() && blocks.len() <= 3, "{examples}");
    assert!(
        blocks
            .iter()
            .all(|block| block["size_bytes"] == 100 && !block["frames"].as_array().unwrap().is_empty())
    );
    let ages: Vec<u64> = blocks.iter().map(|block| block["age_ns"].as_u64().unwrap()).collect();
    assert!(ages.is_sorted_by(|one, other| one >= other), "{ages:?}");
    let side = |to: u32| format!("{{\"file\":0,\"filter\":{{\"range\":[\"0ns\",\"{to}ns\"]}}}}");
    let body = format!("{{\"sides\":[{},{},{}],\"sort\":\"st\"}}", side(1000), side(3000), side(9000));
    let diff = server.ask("diff-functions", &body).json();
    let totals: Vec<u64> =
        diff["totals"].as_array().unwrap().iter().map(|one| one["total_bytes"].as_u64().unwrap()).collect();
    assert_eq!(totals, [9_900, 29_900, 89_900], "{diff}");
    assert_eq!(diff["functions"][0]["amounts"].as_array().unwrap().len(), 3);
    assert!(diff["sentence"].as_str().unwrap().contains(" more"), "{diff}");
    assert_eq!(server.ask("diff-functions", &format!("{{\"sides\":[{}]}}", side(1))).status, 400);
}
