// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest as a generator of triggers on the network, and the host that shows what it measures.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use testbench::{Lab, Started, assert_as_promised_by, have_kernels, users_of, wait_for};

/// A row of `onset export --csv`, without what a generator does not tell: responder, trigger, instant, latency.
type Row = (String, u64, u64, u64);

fn rows(lab: &Lab, run: &str) -> Vec<Row> {
    let csv = lab.onset(&["export", run, "--csv"]).exits(0).stdout;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |n: usize| cells[n].parse().expect("a number");
        (cells[0].to_owned(), number(1), number(2), number(3))
    };
    csv.lines().skip(1).map(row).collect()
}

fn generator(lab: &Lab, words: &[&str]) -> (Started, String) {
    let guest = ["generator", "--flavour", "6.12 preempt=none", "--load", "mixed"];
    let words = [&guest[..], &["--listen", "127.0.0.1:0"], words].concat();
    let mut started = Started::of(&mut lab.command(&words));
    let said = started.wait_until_it_says("listening on");
    let address = said.rsplit(' ').next().expect("an address").to_owned();
    (started, address)
}

#[test]
fn what_hosts_ask_for_is_logged_and_a_run_of_the_log_has_the_same_samples() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let log = lab.path().join("log.toml");
    let log = log.to_str().expect("the lab's path is text");
    let (mut generator, address) = generator(&lab, &["--log", log]);
    let host = |words: &[&str]| {
        let printed = lab.onset(&[&["live", &address, "--record", "--json"], words].concat());
        let printed = printed.exits(0).json();
        assert_as_promised_by("live", &printed);
        printed
    };
    // Two hosts, one after the other, that ask for other frequencies, duty cycles and instants.
    let first = host(&["--frequency", "1kHz", "--count", "150"]);
    let second =
        host(&["--period", "700us", "--duty", "40%", "--jitter", "200us", "--count", "100"]);
    for (printed, count) in [(&first, 150), (&second, 100)] {
        assert_eq!((&printed["triggers"], &printed["clock"]), (&count.into(), &"virtual".into()));
        assert_eq!(printed["generator"], "6.12 preempt=none mixed");
        let hardirq = &printed["series"][0];
        assert_eq!((&hardirq["responder"], &hardirq["count"]), (&"hardirq".into(), &count.into()));
    }
    generator.wait_until_it_says("run 2 is complete, after 100 triggers; hardirq: 100 answers");
    generator.signal(libc::SIGINT);
    generator.wait().exits(130);
    assert_eq!(users_of(lab.path()), [0; 0]);

    let bundles = lab.bundles();
    let live: Vec<Vec<Row>> = bundles.iter().map(|run| rows(&lab, run)).collect();
    assert_eq!(live.len(), 2);
    let text = fs::read_to_string(log).expect("a log");
    let times: Vec<u64> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("ns\",")?.parse().ok())
        .collect();
    assert_eq!(times.len(), 250);
    let run = lab.onset(&["run", log, "--json"]).exits(3).run();
    let again = rows(&lab, run.text("run"));
    // A host counts triggers and time from the start of its run.
    let mut told: Vec<Row> = Vec::new();
    for (rows, base) in live.iter().zip([0_usize, 150]) {
        let start = times[base] - rows.iter().find(|row| row.1 == 0).expect("the first").2;
        let moved = rows.iter().map(|(r, n, at, ns)| (r.clone(), n + base as u64, at + start, *ns));
        told.extend(moved);
    }
    assert!(told.len() > 1_500, "{}", told.len());
    assert_eq!(told, again);

    // Had a trigger come elsewhere, so had the answers.
    let other =
        text.replacen(&format!("\"{}ns\"", times[40]), &format!("\"{}ns\"", times[40] + 1), 1);
    fs::write(log, other).expect("ours");
    let run = lab.onset(&["run", log, "--json"]).exits(3).run();
    assert_ne!(told, rows(&lab, run.text("run")));
}

#[test]
fn a_host_that_is_interrupted_keeps_what_it_recorded_and_the_generator_serves_the_next() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let (generator, address) = generator(&lab, &["--responder", "hardirq", "--responder", "task"]);
    let words = ["live", &address, "--frequency", "500Hz", "--record"];
    let mut host = Started::of(&mut lab.command(&words));
    host.wait_until_it_says("task: min");
    host.signal(libc::SIGINT);
    let finished = host.wait().exits(0).says(&["ended as the host asked"]);
    assert!(finished.stdout.contains("hardirq") && finished.stdout.contains("500 Hz"));
    let bundles = lab.bundles();
    let shown = lab.onset(&["show", &bundles[0], "--verify", "--json"]).exits(0).json();
    assert_eq!(
        (&shown["complete"], &shown["about"]["target"]),
        (&true.into(), &"generator".into())
    );
    let warnings = shown["conclusion"]["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|w| w["code"] == "from_outside"), "{warnings:#?}");
    let refused = lab.onset(&["live", &address, "--frequency", "3Hz"]);
    refused.exits(2).says(&["no whole number", "--period 333333333ns or --period 333333334ns"]);
    let next = lab.onset(&["live", &address, "--frequency", "2kHz", "--count", "20", "--json"]);
    let next: Value = next.exits(0).json();
    assert_eq!(next["triggers"], 20);
    drop(generator);
    lab.onset(&["live", &address]).exits(69).says(&["cannot open", "onset generator"]);
}

/// The answer of a server to a request.
fn ask(address: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let heads =
        format!("host: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n");
    write!(stream, "{request} HTTP/1.1\r\n{heads}content-length: {length}\r\n\r\n{body}")
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and hangs up");
    answer
}

#[test]
fn the_page_runs_a_generator_and_records_what_it_measures() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let (generator, place) = generator(&lab, &["--responder", "hardirq", "--responder", "task"]);
    let mut served = Started::of(&mut lab.command(&["serve", "--listen", "127.0.0.1:0"]));
    let said = served.wait_until_it_says("http://");
    let address = said.trim_start_matches("http://").split('/').next().expect("an address");
    let asked =
        format!("{{\"place\":{place:?},\"frequency\":\"1kHz\",\"count\":60,\"record\":true}}");
    assert!(ask(address, "POST /api/live/start", &asked).starts_with("HTTP/1.1 200"));
    wait_for("sixty answers", || {
        let metrics = ask(address, "GET /metrics", "");
        metrics.contains("onset_latency_seconds_count{responder=\"hardirq\"} 60").then_some(())
    });
    let bundle = wait_for("the bundle", || lab.bundles().pop());
    let shown = lab.onset(&["show", &bundle, "--verify", "--json"]).exits(0).json();
    assert_eq!((&shown["instrument"], &shown["complete"]), (&"generator".into(), &true.into()));
    assert_eq!(shown["series"][0]["count"], 60);
    assert!(ask(address, "GET /api/runs", "").contains(&bundle));
    assert!(ask(address, &format!("GET /report?run={bundle}"), "").contains("onset-report"));
    served.signal(libc::SIGINT);
    served.wait().exits(130);
    drop(generator);
}
