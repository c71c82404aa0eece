// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests as a browser, and as somebody hostile, sends them.

mod live;

use super::*;
use bundle::examples::{run_id, write_bundle};
use bundle::{Tool, UtcTime};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use work::Cancel;

struct Clock;

impl Issuer for Clock {
    fn now(&self) -> UtcTime {
        UtcTime::from_unix_seconds(1_790_000_000).expect("a time")
    }

    fn tool(&self) -> Tool {
        Tool { version: "0.0.0".into(), revision: "test".into() }
    }
}

/// The page of a store with two runs.
struct Served {
    address: SocketAddr,
    token: Option<String>,
    store: tempfile::TempDir,
    cancel: Cancel,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Served {
    fn new() -> Served {
        Served::at("127.0.0.1:0")
    }

    fn at(address: &str) -> Served {
        let store = tempfile::tempdir().expect("a directory");
        (0..2).for_each(|n| drop(write_bundle(store.path(), &run_id(n), 20)));
        let (listener, door) = Door::open(address.parse().expect("an address")).expect("a port");
        let url = door.url("localhost");
        let (_, place) = url.split_once("://").expect("an address");
        let (_, path) = place.split_once('/').expect("a path");
        let token = (!path.is_empty()).then(|| path.trim_end_matches('/').to_owned());
        let port = listener.local_addr().expect("a port").port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let site = Site {
            store: store.path().to_owned(),
            page: "the page".into(),
            viewer: "<before>__ONSET_REPORT__<after>".into(),
            issuer: Box::new(Clock),
        };
        let cancel = Cancel::default();
        let asked = cancel.clone();
        let thread = std::thread::spawn(move || asked.during(|| serve((listener, door), site)));
        Served { address, token, store, cancel, thread: Some(thread) }
    }

    /// The answer to a request with these headers: its status, its headers, its body.
    fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("it takes it");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it answers and hangs up");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a status");
        (status, head.to_lowercase(), body.to_owned())
    }

    fn host(&self) -> String {
        format!("host: {}\r\n", self.address)
    }

    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask(&format!("GET {path}"), &self.host(), "")
    }

    fn post(&self, path: &str, body: &str) -> (u16, String, String) {
        let headers = format!("{}content-type: application/json\r\n", self.host());
        self.ask(&format!("POST {path}"), &headers, body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cancel.ask();
        let ended = self.thread.take().expect("once").join().expect("no panic");
        ended.expect("it served");
    }
}

#[test]
fn the_page_the_list_a_report_and_raw_data_are_served_and_kept_by_nobody() {
    let served = Served::new();
    let (status, head, body) = served.get("/");
    assert_eq!((status, body.as_str()), (200, "the page"));
    for said in ["cache-control: no-store", "nosniff", "x-frame-options: deny", "frame-ancestors"] {
        assert!(head.contains(said), "{said}: {head}");
    }
    let (status, _, list) = served.get("/api/runs");
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!((status, list["runs"].as_array().map(Vec::len)), (200, Some(2)));
    let [first, second] = [0, 1].map(|n| run_id(n).to_string());
    let (status, _, report) = served.get(&format!("/report?run={first}&run={second}"));
    assert_eq!(status, 200);
    assert!(report.starts_with("<before>{") && report.ends_with("<after>"), "{report}");
    assert!(report.contains(&first) && report.contains(&second));
    // The links of the report lead here.
    assert!(report.contains(&format!("\"{first}/manifest.json\"")), "{report}");
    let (status, head, manifest) = served.get(&format!("/{first}/manifest.json"));
    assert_eq!((status, head.contains("application/json")), (200, true));
    let on_disk = std::fs::read_to_string(served.store.path().join(&first).join("manifest.json"));
    assert_eq!(manifest, on_disk.expect("a file"));
    assert_eq!(served.get(&format!("/{first}/histograms/task.hdr")).0, 200);
}

#[test]
fn no_path_leads_out_of_the_store_and_nothing_but_what_a_bundle_lists_is_read() {
    let served = Served::new();
    std::fs::write(served.store.path().join("secret"), "secret").expect("ours");
    let run = run_id(0).to_string();
    std::fs::write(served.store.path().join(&run).join("more.json"), "secret").expect("ours");
    for path in [
        "/../secret".to_owned(),
        "/..%2fsecret".into(),
        "/secret/manifest.json".into(),
        format!("/{run}/..%2f..%2fsecret"),
        format!("/{run}/../secret"),
        format!("/{run}/more.json"),
        format!("/{run}/histograms/..%2fmanifest.json"),
        format!("/{run}/%00"),
        "/%2e%2e/manifest.json".into(),
        "/nothing/at/all/here".into(),
        "/20261126-000000-none-0000/manifest.json".into(),
    ] {
        let (status, _, body) = served.get(&path);
        assert!((400..500).contains(&status), "{path}: {status}");
        assert!(!body.contains("secret"), "{path}: {body}");
    }
    for query in ["", "?run=../..", "?run=latest", "?other=1"] {
        let (status, _, body) = served.get(&format!("/report{query}"));
        assert!((400..500).contains(&status), "{query}: {status} {body}");
    }
    let many = format!("?run={run}").repeat(1) + &format!("&run={run}").repeat(64);
    assert_eq!(served.get(&format!("/report{many}")).0, 422);
}

#[test]
fn what_another_site_sends_is_refused() {
    let served = Served::new();
    let body = "{\"place\":\"127.0.0.1:1\"}";
    let kind = "content-type: application/json\r\n";
    for more in ["origin: http://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
        let headers = format!("{}{kind}{more}", served.host());
        assert_eq!(served.ask("POST /api/live/start", &headers, body).0, 403, "{more}");
    }
    let renamed = format!("host: evil.example:{}\r\n", served.address.port());
    assert_eq!(served.ask("GET /api/runs", &renamed, "").0, 403);
    // A form, which a page may send anywhere, is no JSON.
    let form = format!("{}content-type: text/plain\r\n", served.host());
    assert_eq!(served.ask("POST /api/live/start", &form, body).0, 415);
    assert!(lab::loopback::listen("0.0.0.0:0".parse().expect("an address")).is_err());
}

#[test]
fn a_generator_that_is_not_there_is_told_to_the_page_and_bad_words_to_who_sent_them() {
    let served = Served::new();
    for (order, body) in [("stop", "{}"), ("reset", "{}"), ("mark", "{\"note\":\"x\"}")] {
        assert_eq!(served.post(&format!("/api/live/{order}"), body).0, 409, "{order}");
    }
    assert_eq!(served.get("/api/live/log.csv").0, 409);
    for (body, says) in [
        ("{\"place\":\"x:1\",\"frequency\":\"2\"}", "as in 16Hz"),
        ("{\"place\":\"/dev/null\"}", "is no place of a generator"),
        ("{\"place\":\"x:1\",\"duty\":\"200%\"}", "as in 10%"),
        ("{\"place\":\"x:1\",\"responders\":[\"nobody\"]}", "known are hardirq"),
    ] {
        let (status, _, text) = served.post("/api/live/start", body);
        assert!(status == 400 && text.contains(says), "{body}: {status} {text}");
    }
    for body in [
        "",
        "{",
        "{\"place\":1}",
        "{\"place\":\"x:1\",\"other\":1}",
        "{\"place\":\"x:1\",\"count\":0}",
    ] {
        let status = served.post("/api/live/start", body).0;
        assert!((400..500).contains(&status), "{body}: {status}");
    }
    let huge = format!("{{\"place\":\"{}\"}}", "x".repeat(70_000));
    assert_eq!(served.post("/api/live/start", &huge).0, 413);
    assert_eq!(served.post("/api/live/start", "{\"place\":\"127.0.0.1:1\"}").0, 200);
    let mut stream = TcpStream::connect(served.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    write!(stream, "GET /api/live HTTP/1.1\r\n{}\r\n", served.host()).expect("it takes it");
    let mut told = String::new();
    let mut bytes = [0; 1024];
    while !told.contains("\"failed\"") {
        let read = stream.read(&mut bytes).expect("it goes on telling");
        assert!(read > 0, "{told}");
        told += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(told.contains("cannot open 127.0.0.1:1"), "{told}");
    assert!(served.get("/metrics").2.ends_with("# EOF\n"));
}

#[test]
fn what_a_page_is_told_is_what_its_own_tests_begin_with() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/told.json");
    let told = serde_json::to_string_pretty(&crate::live::example()).expect("plain data") + "\n";
    let kept = std::fs::read_to_string(path).expect("a file");
    assert_eq!(kept, told, "write this to web/test/told.json");
}

#[test]
fn a_run_goes_to_the_bin_and_comes_back_and_only_its_own_page_can_ask_for_it() {
    let served = Served::new();
    let run = run_id(0).to_string();
    let body = format!("{{\"run\":\"{run}\"}}");
    let count = |list: &str| {
        let list: serde_json::Value = serde_json::from_str(list).expect("JSON");
        list["runs"].as_array().map(Vec::len)
    };
    let foreign = format!(
        "{}content-type: application/json\r\norigin: http://evil.example\r\n",
        served.host()
    );
    assert_eq!(served.ask("POST /api/runs/discard", &foreign, &body).0, 403);
    assert_eq!(served.get("/api/runs/discard").0, 405);
    assert_eq!(served.post("/api/runs/discard", &body).0, 200);
    assert_eq!(count(&served.get("/api/runs").2), Some(1));
    assert_eq!(count(&served.get("/api/bin").2), Some(1));
    // What is in the bin is not read by its old name, nor by any other.
    assert_eq!(served.get(&format!("/{run}/manifest.json")).0, 404);
    assert_eq!(served.get(&format!("/.bin/{run}/manifest.json")).0, 404);
    assert_eq!(served.post("/api/runs/discard", &body).0, 422);
    for wrong in ["..", ".bin", "latest", "../store", ""] {
        let body = format!("{{\"run\":\"{wrong}\"}}");
        assert_eq!(served.post("/api/runs/discard", &body).0, 404, "{wrong}");
        assert_eq!(served.post("/api/runs/restore", &body).0, 404, "{wrong}");
    }
    assert_eq!(served.post("/api/runs/restore", &body).0, 200);
    assert_eq!(count(&served.get("/api/runs").2), Some(2));
    assert_eq!(served.get(&format!("/{run}/manifest.json")).0, 200);
}

#[test]
fn a_history_has_the_runs_that_are_asked_for_oldest_first_with_what_a_wall_draws() {
    let served = Served::new();
    std::fs::create_dir(served.store.path().join(run_id(9).as_str())).expect("ours");
    let ask = |query: &str| {
        let (status, _, body) = served.get(&format!("/api/history{query}"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<serde_json::Value>(&body).expect("JSON")
    };
    let all =
        ask("?title=Response%20ladder&flavour=6.12%20preempt%3Dnone&load=idle&instrument=trigger");
    assert_eq!(all["responders"], serde_json::json!(["hardirq", "task"]));
    assert_eq!(
        (&all["responder"], &all["omitted"], &all["damaged"]),
        (&"task".into(), &0.into(), &0.into())
    );
    let runs = all["runs"].as_array().expect("runs");
    let names: Vec<&str> = runs.iter().filter_map(|run| run["run"].as_str()).collect();
    assert_eq!(names, [0, 1].map(|n| run_id(n).to_string()));
    let numbers = &runs[0]["numbers"];
    assert_eq!((&numbers["count"], &numbers["losses"]["superseded"]), (&20.into(), &2.into()));
    let columns = numbers["columns"].as_array().expect("columns");
    let counted: u64 = columns.iter().filter_map(|column| column["count"].as_u64()).sum();
    assert_eq!(counted, 20);
    assert!(numbers["p50_ns"].as_u64() < numbers["max_ns"].as_u64());
    assert_eq!(runs[0]["kernel"], "6.12.0-amd64");
    assert_eq!(ask("?responder=hardirq")["responder"], "hardirq");
    assert_eq!(ask("?responder=nobody")["runs"][0]["numbers"], serde_json::Value::Null);
    assert_eq!(ask("?load=mixed")["runs"], serde_json::json!([]));
    assert_eq!(served.get("/api/history?other=1").0, 400);
}

#[test]
fn a_file_is_sent_in_parts_with_its_length() {
    let served = Served::new();
    let run = run_id(3);
    write_bundle(served.store.path(), &run, 120_000);
    let path = served.store.path().join(run.as_str()).join("samples.parquet");
    let length = path.metadata().expect("a file").len();
    assert!(length > 64 * 1024, "it has more than one part: {length}");
    let mut stream = TcpStream::connect(served.address).expect("it listens");
    let request = format!(
        "GET /{run}/samples.parquet HTTP/1.1\r\n{}connection: close\r\n\r\n",
        served.host()
    );
    stream.write_all(request.as_bytes()).expect("it takes it");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    assert!(head.contains(&format!("content-length: {length}\r\n")), "{head}");
    assert!(bytes[end..] == std::fs::read(path).expect("a file"));
}

#[test]
fn where_others_can_reach_it_nothing_is_told_without_the_token() {
    let served = Served::at("0.0.0.0:0");
    let token = served.token.clone().expect("others can reach it");
    let run = run_id(0).to_string();
    for path in [
        "/",
        "/api/runs",
        "/metrics",
        "/api/live",
        &format!("/{run}/manifest.json"),
        &format!("/{}/", "0".repeat(32)),
    ] {
        let (status, head, body) = served.get(path);
        assert!(
            status == 403 && body.contains("holds a token") && head.contains("no-store"),
            "{path}"
        );
        assert!(!body.contains(&run) && !body.contains(&token));
    }
    assert_eq!(served.post("/api/runs/discard", &format!("{{\"run\":\"{run}\"}}")).0, 403);
    assert_eq!(served.get(&format!("/{token}/")).2, "the page");
    let (status, _, report) = served.get(&format!("/{token}/report?run={run}"));
    // Its links go on from its own address, and so carry the token.
    assert!(status == 200 && report.contains(&format!("\"{run}/manifest.json\"")), "{report}");
    assert_eq!(served.get(&format!("/{token}/{run}/manifest.json")).0, 200);
    assert_eq!(served.get(&format!("/{token}/../{token}/")).0, 404);
    let foreign = format!("{}sec-fetch-site: cross-site\r\n", served.host());
    assert_eq!(served.ask(&format!("GET /{token}/api/runs"), &foreign, "").0, 403);
}
