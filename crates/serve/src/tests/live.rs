// SPDX-License-Identifier: GPL-2.0-or-later
//! A conversation with a generator, from the start to what was recorded of it.

use super::*;
use lab::generator::fake::Served as Generator;
use lab::target::fake::Fake;

/// What pages are told, until `is_so`.
fn told(served: &Served, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let mut stream = TcpStream::connect(served.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    write!(stream, "GET /api/live HTTP/1.1\r\n{}\r\n", served.host()).expect("it takes it");
    let (mut text, mut bytes) = (String::new(), [0; 16 * 1024]);
    loop {
        let read = stream.read(&mut bytes).expect("it goes on telling");
        assert!(read > 0, "{text}");
        text += &String::from_utf8_lossy(&bytes[..read]);
        let whole = text.split("\n\n").filter_map(|event| event.split_once("data: "));
        let events = whole.filter_map(|(_, data)| serde_json::from_str(data.trim()).ok());
        if let Some(told) = events.last().filter(|told| is_so(told)) {
            return told;
        }
    }
}

#[test]
fn a_run_is_logged_marked_and_named_by_its_worst_latencies_while_it_goes_on() {
    let (generator, served) = (Generator::new(Fake::default()), Served::new());
    let place = generator.address.to_string();
    let asked =
        format!("{{\"place\":{place:?},\"frequency\":\"500Hz\",\"batch\":1,\"record\":true}}");
    assert_eq!(served.post("/api/live/start", &asked).0, 200);
    told(&served, |told| told["standing"] == "running" && told["triggers"].as_u64() > Some(5));
    let log = std::thread::scope(|threads| {
        let log = threads.spawn(|| served.get("/api/live/log.csv"));
        let wrong = format!("{{\"note\":\"{}\"}}", "x".repeat(201));
        assert_eq!(served.post("/api/live/mark", &wrong).0, 400);
        assert_eq!(served.post("/api/live/mark", "{\"note\":\"the <b>door</b>\"}").0, 200);
        let is_marked = |told: &serde_json::Value| told["marks"][0]["note"] == "the <b>door</b>";
        told(&served, |told| told["triggers"].as_u64() > Some(50) && is_marked(told));
        assert_eq!(served.post("/api/live/stop", "{}").0, 200);
        log.join().expect("no panic")
    });
    let (status, head, csv) = log;
    assert!(status == 200 && head.contains("attachment") && head.contains("text/csv"), "{head}");
    let told = told(&served, |told| told["standing"] == "ended");
    let run = told["bundle"].as_str().expect("it was recorded").to_owned();
    let bundle = bundle::Bundle::open(&served.store.path().join(&run)).expect("a bundle");
    let source = &bundle.manifest().about.experiment.source;
    assert!(source.contains("# mark at trigger ") && source.contains("ns: the <b>door</b>\n"));

    // The log has a whole end of the recording: each of its rows, and none missing from its first row on.
    let names: Vec<_> = bundle.manifest().series.iter().map(|s| s.responder.to_string()).collect();
    let mut recorded = Vec::new();
    let each = |s: sample::Sample| {
        let name = &names[s.series.index()];
        recorded.push(format!("{name},{},{},{}", s.trigger, s.at.0, s.latency.0));
    };
    bundle.samples(each).expect("it is sound");
    // The rows of HTTP's parts, without their lengths.
    let rows: Vec<&str> = csv.lines().filter(|line| line.contains(',')).collect();
    assert_eq!(rows[0], "responder,trigger,at_ns,latency_ns");
    assert!(rows.len() > 10, "{csv}");
    assert!(recorded.ends_with(&rows[1..].iter().map(ToString::to_string).collect::<Vec<_>>()));

    let metrics = served.get("/metrics").2;
    let label = format!("# {{run=\"{run}\",sample=\"");
    let exemplar = metrics.lines().find(|line| line.contains(&label)).expect("an exemplar");
    let trigger = exemplar.split("sample=\"").nth(1).and_then(|rest| rest.split('"').next());
    let of = format!(",{},", trigger.expect("a number"));
    assert!(recorded.iter().any(|row| row.contains(&of)), "{exemplar}");
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let headers = format!("{}accept: {protobuf}\r\n", served.host());
    let (status, head, _) = served.ask("GET /metrics", &headers, "");
    assert!(status == 200 && head.contains("application/vnd.google.protobuf"), "{head}");
}
