// SPDX-License-Identifier: GPL-2.0-or-later
//! How many measurements a second pass from a generator to its host, through loopback: made into batches and frames,
//! written, read, checked, and counted in series. Prints; asserts that none is lost.

mod device;
mod figure;

use device::Device;
use figure::{heading, print, spread};
use lab::live::Live;
use std::net::TcpListener;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const MEASUREMENTS: u64 = 4_000_000;

fn main() {
    heading();
    let rates = (0..5).map(|_| rate()).collect();
    print(
        "generator protocol through loopback, measurements a second",
        "1000000",
        spread(rates, 0),
    );
}

fn rate() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("a port").to_string();
    let device =
        Device { measurements: MEASUREMENTS, period: Duration::ZERO, begun: OnceLock::new() };
    let device =
        std::thread::spawn(move || device.serve(&mut listener.accept().expect("a host").0));
    let mut live = Live::connect(&place).expect("the device answers");
    live.start().expect("it starts");
    let begun = Instant::now();
    while live.is_running() {
        live.listen(Duration::from_millis(20)).expect("it goes on");
        live.observed();
    }
    let passed = begun.elapsed();
    let channel = &live.channels()[0];
    assert_eq!((channel.series.summary().count, channel.losses.total()), (MEASUREMENTS, 0));
    // The device stays until its host has gone.
    drop(live);
    device.join().expect("no panic");
    MEASUREMENTS as f64 / passed.as_secs_f64()
}
