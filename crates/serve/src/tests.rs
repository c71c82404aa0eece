// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests as a browser, and as somebody hostile, sends them.

use super::*;
use bundle::examples::{run_id, write_bundle};
use bundle::{Tool, UtcTime};
use std::io::{Read, Write};
use std::net::TcpStream;
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
    store: tempfile::TempDir,
    cancel: Cancel,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Served {
    fn new() -> Served {
        let store = tempfile::tempdir().expect("a directory");
        (0..2).for_each(|n| drop(write_bundle(store.path(), &run_id(n), 20)));
        let listener =
            lab::loopback::listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = listener.local_addr().expect("a port");
        let site = Site {
            store: store.path().to_owned(),
            page: "the page".into(),
            viewer: "<before>__ONSET_REPORT__<after>".into(),
            issuer: Box::new(Clock),
        };
        let cancel = Cancel::default();
        let asked = cancel.clone();
        let thread = std::thread::spawn(move || asked.during(|| serve(listener, site)));
        Served { address, store, cancel, thread: Some(thread) }
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
    assert_eq!(served.post("/api/live/stop", "{}").0, 409);
    for (body, says) in [
        ("{\"place\":\"x:1\",\"frequency\":\"2\"}", "as in 16Hz"),
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
    let told = serde_json::to_string_pretty(&live::example()).expect("plain data") + "\n";
    let kept = std::fs::read_to_string(path).expect("a file");
    assert_eq!(kept, told, "write this to web/test/told.json");
}
