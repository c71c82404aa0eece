// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset serve` costs while a generator measures 20,000 times a second, how far its page is behind, how soon a
//! list of 10,000 runs is there, and whether server or page grow. Needs what `make build` builds, and for the page in
//! Chromium `npm ci` and `node build.mjs --tests` in `web`. Prints; asserts that nothing is lost.
//!
//! `ONSET_BENCH_SECONDS=3600 cargo bench --bench page -- growth` watches both for an hour.

mod device;
mod figure;

use bundle::examples::{run_id, write_bundle};
use device::Device;
use figure::{heading, print, spread};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const A_SECOND: u64 = 20_000;
const RUNS: u64 = 10_000;

fn main() {
    let only =
        ["live", "list", "growth"].into_iter().find(|what| std::env::args().any(|w| w == *what));
    let is_wanted = |what| only.is_none_or(|only| only == what);
    heading();
    if is_wanted("live") {
        live();
    }
    if is_wanted("list") {
        list();
    }
    if is_wanted("growth") {
        growth();
    }
}

/// How long a measurement goes on, in seconds.
fn seconds(otherwise: u64) -> u64 {
    let asked = std::env::var("ONSET_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(otherwise)
}

/// A generator that measures as long, and the place where it is.
fn device(seconds: u64) -> (Arc<Device>, String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("a port").to_string();
    let period = Duration::from_secs(1) / A_SECOND as u32;
    let measurements = A_SECOND * seconds;
    let device = Arc::new(Device { measurements, period, begun: OnceLock::new() });
    let own = device.clone();
    let thread = std::thread::spawn(move || own.serve(&mut listener.accept().expect("a host").0));
    (device, place, thread)
}

/// `onset serve` of a store, ended with it.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn of(store: &Path) -> Served {
        let onset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/onset");
        let mut command = Command::new(onset);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store"]).arg(store);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("make build");
        let mut said = String::new();
        let told = child.stderr.take().expect("piped");
        BufReader::new(told).read_line(&mut said).expect("it says where");
        let place = said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = place.expect("an address").to_owned();
        Served { child, address }
    }

    fn send(&self, request: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("it takes it");
        stream
    }

    fn ask(&self, request: &str, body: &str) -> String {
        let mut answer = String::new();
        self.send(request, body).read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// The processor time of the server so far, in seconds, and its memory in MiB.
    fn costs(&self) -> (f64, f64) {
        let read = |name| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).expect("it runs")
        };
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks: f64 = [11, 12].iter().filter_map(|n| fields[*n].parse::<f64>().ok()).sum();
        let status = read("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        (ticks / 100.0, kib.expect("a size") / 1024.0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is gone already where it failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn live() {
    let (device, place, thread) = device(seconds(20));
    let store = tempfile::tempdir().expect("a directory");
    let served = Served::of(store.path());
    served.ask("POST /api/live/start", &format!("{{\"place\":{place:?}}}"));
    let mut events = BufReader::new(served.send("GET /api/live", ""));
    let (mut behind, mut sizes) = (Vec::new(), Vec::new());
    let mut line = String::new();
    let last = loop {
        line.clear();
        assert!(events.read_line(&mut line).expect("it goes on telling") > 0, "it hung up");
        let Some(told) = line.strip_prefix("data: ") else { continue };
        let told: serde_json::Value = serde_json::from_str(told).expect("JSON");
        let measured = Duration::from_nanos(told["measured_ns"].as_u64().expect("a time"));
        if told["standing"] == "ended" || told["standing"] == "failed" {
            break told;
        }
        if measured.is_zero() {
            continue;
        }
        let passed = device.begun.get().expect("it measures").elapsed();
        behind.push(passed.saturating_sub(measured).as_secs_f64());
        sizes.push(served.costs().1);
    };
    let (used, _) = served.costs();
    let passed = device.begun.get().expect("it measured").elapsed().as_secs_f64();
    let channel = &last["channels"][0]["summary"];
    assert_eq!(channel["count"], device.measurements, "{last}");
    assert_eq!(channel["losses"]["dropped"], 0);
    // Each page is told four times a second, so that the numbers are as old as that before they are told again.
    let longest = behind.iter().copied().fold(0.0, f64::max) + 0.25;
    print("live page behind, at most, s", "1", format!("{longest:.2}"));
    print("onset serve, % of a core", "20", format!("{:.1}", 100.0 * used / passed));
    let most = sizes.iter().copied().fold(0.0, f64::max);
    print("onset serve, memory at most, MiB", "150", format!("{most:.1}"));
    let half = sizes[sizes.len() / 2];
    let end = sizes.last().copied().unwrap_or(half);
    print(
        &format!("memory from the half to the end of {passed:.0} s, MiB"),
        "–",
        format!("{half:.1} … {end:.1}"),
    );
    drop((events, served));
    thread.join().expect("no panic");
}

/// Watches the server and a page in Chromium, and says how both stand at the beginning, at the half and at the end.
fn growth() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist/test/growth.mjs");
    let seconds = seconds(60);
    let (_, place, thread) = device(seconds);
    let store = tempfile::tempdir().expect("a directory");
    let served = Served::of(store.path());
    served.ask("POST /api/live/start", &format!("{{\"place\":{place:?}}}"));
    let mut command = Command::new("node");
    command.arg(script).env("ONSET_PAGE", format!("http://{}/", served.address));
    command.env("ONSET_EVERY", (seconds / 60).clamp(5, 60).to_string());
    let mut watcher = command.stdout(Stdio::piped()).spawn().expect("node, and the script built");
    let lines = BufReader::new(watcher.stdout.take().expect("piped")).lines();
    let mut samples = Vec::new();
    for line in lines.map_while(Result::ok) {
        let page: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let heap = page["heap_bytes"].as_f64().expect("a size") / (1024.0 * 1024.0);
        let nodes = page["nodes"].as_f64().expect("a number");
        let server = served.costs().1;
        let slowest = page["slowest_ms"].as_f64().expect("a time");
        eprintln!(
            "{:>5}: server {server:.1} MiB, page {heap:.1} MiB, {nodes} nodes, answers after at most {slowest} ms",
            samples.len()
        );
        samples.push([server, heap, nodes]);
    }
    assert!(watcher.wait().expect("it ran").success(), "{samples:?}");
    // The page keeps the latest 250,000 edges, which come within seconds; code that is compiled comes to rest later.
    let [first, half, end] = [samples.len() / 6, samples.len() / 2, samples.len() - 1];
    for (n, what) in
        ["onset serve, MiB", "page's scripts after a collection, MiB", "nodes of the page"]
            .iter()
            .enumerate()
    {
        let of = |at: usize| samples[at][n];
        print(
            &format!("{what}: at a sixth, the half, the end of {seconds} s"),
            "no growth",
            format!("{:.1} … {:.1} … {:.1}", of(first), of(half), of(end)),
        );
    }
    drop(served);
    thread.join().expect("no panic");
}

fn list() {
    let store = tempfile::tempdir().expect("a directory");
    (0..RUNS).for_each(|n| drop(write_bundle(store.path(), &run_id(n), 1)));
    let served = Served::of(store.path());
    let once = || {
        let begun = Instant::now();
        let list = served.ask("GET /api/runs", "");
        assert_eq!(list.matches("\"run\":").count() as u64, RUNS);
        begun.elapsed().as_secs_f64() * 1e3
    };
    print("list of 10,000 runs, the first, ms", "–", format!("{:.0}", once()));
    print(
        "list of 10,000 runs, each after it, ms",
        "100",
        spread((0..10).map(|_| once()).collect(), 0),
    );
}
