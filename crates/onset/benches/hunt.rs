// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures that onset promises of the hunt: against waiting, how often a find comes again, whether ledgers are
//! exact, and how fast it looks. Prints; asserts nothing. Takes two hours on two processors, most of them for the
//! waiting; `cargo bench --bench hunt -- PART…` measures only what is named: `speed`, `census`, `breed`, `followed`,
//! `strategies`, or a flavour.
//!
//! Needs what `make build` builds, the kernels 6.12 and 6.12-rt in the cache, and cyclictest (package rt-tests).
//! `followed` also measures whichever of the other kernels of docs/kernels.md are in the cache.

mod figure;
mod processor;

use figure::{heading, print, spread};
use processor::processor_time;
use rig::Cache;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const EXPERIMENT: &str = "experiments/hunt.toml";
const SPEED: &str = "speed";
const CENSUS: &str = "census";
const BREED: &str = "breed";
const FOLLOWED: &str = "followed";
const FLAVOURS: [&str; 3] = ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt"];
const STRATEGIES: &str = "strategies";
const PARTS: [&str; 8] =
    [SPEED, CENSUS, BREED, FOLLOWED, STRATEGIES, FLAVOURS[0], FLAVOURS[1], FLAVOURS[2]];
const RESPONDERS: [&str; 2] = ["hardirq", "task"];
/// Hunts of each flavour, and of each strategy alone.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const SEEDS_ALONE: [u64; 3] = [1, 2, 3];
/// What is waited, in virtual time: the experiment's count of triggers, one a millisecond.
const WAITED_S: f64 = 60.0;
/// How long a strategy tries alone, in virtual seconds.
const ALONE_S: f64 = 5.0;
const NS_PER_S: f64 = 1e9;

type Answer<T> = Result<T, String>;

fn main() -> ExitCode {
    // cargo passes --bench.
    let named: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if let Some(other) = named.iter().find(|name| !PARTS.contains(&name.as_str())) {
        eprintln!("there is no part {other:?}; there are {PARTS:?}");
        return ExitCode::FAILURE;
    }
    heading();
    let store = match tempfile::tempdir() {
        Ok(store) => store,
        Err(e) => {
            eprintln!("no figures: {e}");
            return ExitCode::FAILURE;
        }
    };
    let measure = |part| match part {
        SPEED => speed(store.path()),
        CENSUS => census(store.path()),
        BREED => bred(store.path()),
        FOLLOWED => followed(store.path()),
        STRATEGIES => FLAVOURS.into_iter().try_for_each(|flavour| alone(flavour, store.path())),
        flavour => compare(flavour, store.path()),
    };
    if let Err(why) = PARTS.into_iter().filter(|part| wanted(part)).try_for_each(measure) {
        eprintln!("no further figures: {why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// `onset` with `arguments`, and how long it took.
fn onset(arguments: &[&str], store: &Path) -> Answer<(Value, Duration)> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let begun = Instant::now();
    let output = Command::new(root.join("target/release/onset"))
        .args(arguments)
        .args(["--json", "--store"])
        .arg(store)
        .current_dir(&root)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("target/release/onset: {e}; run make build first"))?;
    let printed = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok((printed, begun.elapsed()))
}

fn number(value: &Value) -> Answer<f64> {
    value.as_f64().ok_or_else(|| format!("{value} is no number"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> Answer<&Vec<Value>> {
    value.as_array().ok_or_else(|| format!("{value} is no list"))
}

/// What a hunt costs, and that its finds come again.
fn speed(store: &Path) -> Answer<()> {
    let hunt = |more: &[&str]| {
        let common = ["hunt", EXPERIMENT, "--flavour", FLAVOURS[1], "--jobs", "1"];
        onset(&[&common, more].concat(), store)
    };
    // Makes the snapshot, which is no part of what is measured.
    let (short, _) = hunt(&["--budget", "2trials", "--strategy", "random"])?;
    let aiming = ["window_start", "window_chain", "coverage", "stage_aware"];
    let aiming = aiming.into_iter().flat_map(|name| ["--strategy", name]);
    let aiming: Vec<&str> = aiming.collect();
    // What a longer hunt took more: both end with explaining as many finds, which is not exploring.
    let aimed = |budget| -> Answer<(f64, f64)> {
        let (aimed, spent) = hunt(&[&aiming[..], &["--budget", budget]].concat())?;
        Ok((number(&aimed["triggers"])?, spent.as_secs_f64()))
    };
    let (few, many) = (aimed("16trials")?, aimed("48trials")?);
    let rate = (many.0 - few.0) / (many.1 - few.1);
    print("aimed triggers, a second and processor", "100", format!("{rate:.0}"));

    let run = ["run", EXPERIMENT, "--set", "trigger.count=1", "--set"];
    let flavour = format!("flavours=[{:?}]", FLAVOURS[1]);
    let (one, _) = onset(&[&run[..], &[&flavour]].concat(), store)?;
    let bundle = text(&one["runs"][0]["bundle"]);
    let again = |times: &str| {
        let choice = ["--sample", "0", "--responder", "task", "--times", times];
        onset(&[&["replay", bundle], &choice[..]].concat(), store)
    };
    let (_, begin) = again("1")?;
    let (_, all) = again("41")?;
    let rate = 40.0 / all.saturating_sub(begin).as_secs_f64();
    print(
        "a snapshot restored with a short run, a second and processor",
        "2.5",
        format!("{rate:.1}"),
    );

    let find = text(&short["worst"][0]["find"]);
    let (replayed, _) = onset(&["replay", find, "--times", "100"], store)?;
    let (identical, times) = (&replayed["identical_times"], &replayed["times"]);
    print("replays that are identical", "100", format!("{identical} of {times}"));
    Ok(())
}

/// A census of 100 µs by 10 ns, of a find of one trigger. Its trials are forks.
fn census(store: &Path) -> Answer<()> {
    let hunt = ["hunt", EXPERIMENT, "--flavour", FLAVOURS[2], "--strategy", "foresight"];
    let (hunt, _) =
        onset(&[&hunt[..], &["--responder", "task", "--budget", "8trials"]].concat(), store)?;
    let find = text(&hunt["worst"][0]["find"]);
    let (census, time) = onset(&["census", find, "--around", "100us", "--every", "10ns"], store)?;
    let (trials, seconds) = (number(&census["triggers"])?, time.as_secs_f64());
    print("a census of 10,000 trials on 6.12-rt, min", "5", format!("{:.1}", seconds / 60.0));
    print("its trials a second", "", format!("{:.0}", trials / seconds));
    Ok(())
}

/// How many loads a search tries, and how late answers come under them.
fn bred(store: &Path) -> Answer<()> {
    for flavour in FLAVOURS {
        let (bred, time) = onset(&["breed", "--flavour", flavour, "--budget", "2min"], store)?;
        let rate = number(&bred["loads"])? / time.as_secs_f64() * 60.0;
        print(&format!("{flavour}: loads bred a minute"), "", format!("{rate:.0}"));
        for responder in RESPONDERS {
            let worst = list(&bred["worst"])?.iter().find(|find| find["responder"] == responder);
            let Some(worst) = worst else { continue };
            let latency = number(&worst["latency_ns"])? / 1e3;
            print(
                &format!("{flavour}: {responder}, the latest under them, µs"),
                "",
                format!("{latency:.1}"),
            );
        }
    }
    Ok(())
}

/// A hunt of at least so many virtual seconds. Trials differ in length: it goes on with as many again until it has
/// them.
fn alone_for(
    virtual_s: f64,
    strategy: &[&str],
    (flavour, seed): (&str, u64),
    store: &Path,
) -> Answer<Value> {
    let directory = tempfile::tempdir_in(store).map_err(|e| e.to_string())?;
    let directory = directory.path().join("hunt").display().to_string();
    let seed = seed.to_string();
    let how = ["hunt", EXPERIMENT, "--flavour", flavour, "--seed", &seed];
    for doublings in 0..8 {
        let budget = format!("{}trials", 8 << doublings);
        let until = ["--directory", &directory, "--budget", &budget];
        let (hunt, _) = onset(&[&how[..], &until, strategy].concat(), store)?;
        if number(&hunt["virtual_ns"])? >= virtual_s * NS_PER_S {
            return Ok(hunt);
        }
    }
    Err(format!("{strategy:?} has not tried for {virtual_s} s in a thousand trials"))
}

/// Each strategy alone, and all together: the worst within the same virtual time. `refine` begins from a find of
/// `window_start`; `disturb` is left out, since what it finds counts as nobody's worst.
fn alone(flavour: &str, store: &Path) -> Answer<()> {
    let alone = hunt::STRATEGIES.iter().filter(|strategy| !strategy.disturbs());
    let choices = alone.map(|s| s.name().as_str()).map(|name| (name, vec!["--strategy", name]));
    for (name, strategy) in choices.chain([("all together", Vec::new())]) {
        let mut worst: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for seed in SEEDS_ALONE {
            let hunt = alone_for(ALONE_S, &strategy, (flavour, seed), store)?;
            for responder in RESPONDERS {
                let own = list(&hunt["growth"])?.iter().filter(|s| s["responder"] == responder);
                let until = own.take_while(|s| {
                    s["virtual_ns"].as_f64().is_some_and(|at| at <= ALONE_S * NS_PER_S)
                });
                let latest = until.last().map_or(Ok(0.0), |step| number(&step["latency_ns"]))?;
                worst.entry(responder).or_default().push(latest / 1e3);
            }
        }
        for (responder, worst) in worst {
            let figure =
                format!("  {flavour}, {name}: {responder}, worst in {ALONE_S} virtual s, µs");
            print(&figure, "–", spread(worst, 1));
        }
    }
    Ok(())
}

/// What following costs with all there is to watch, and stacks. The flavours that the figure was promised for come
/// first.
fn followed(store: &Path) -> Answer<()> {
    let others = ["6.1", "6.1-rt", "7.2", "7.3 preempt=lazy", "7.3 preempt=full", "7.3-rt"];
    let cache = Cache::of_user().and_then(|cache| cache.kernels()).map_err(|e| e.to_string())?;
    let kernel = |flavour: &str| flavour.split(' ').next().is_some_and(|k| cache.get(k).is_ok());
    for flavour in FLAVOURS.into_iter().chain(others).filter(|flavour| kernel(flavour)) {
        let flavours = format!("flavours=[{flavour:?}]");
        let plain = ["run", EXPERIMENT, "--set", "trigger.count=2000", "--set", &flavours];
        let (run, _) = onset(&plain, store)?;
        let bundle = text(&run["runs"][0]["bundle"]).to_owned();
        ledgers(flavour, &run["runs"][0], store)?;
        let (mut ratios, mut shares) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let before = processor_time();
            let (_, plain) = onset(&plain, store)?;
            let between = processor_time();
            let (_, watched) = onset(&["windows", &bundle], store)?;
            let after = processor_time();
            ratios.push(watched.as_secs_f64() / plain.as_secs_f64());
            shares.push((after - between).as_secs_f64() / (between - before).as_secs_f64());
        }
        let figure = format!("wall time followed, with stacks, / plain: {flavour}");
        print(&figure, "1.25", spread(ratios, 2));
        print("  the same of processor time", "1.25", spread(shares, 2));
    }
    Ok(())
}

/// Whether the rows of each responder's ledger add up to its latencies as they were measured, to the nanosecond.
fn ledgers(flavour: &str, run: &Value, store: &Path) -> Answer<()> {
    let (blamed, _) = onset(&["blame", text(&run["bundle"]), "--above", "all"], store)?;
    let ledgers = list(&blamed["ledgers"])?;
    let mut exact = 0;
    for ledger in ledgers {
        let rows = list(&ledger["rows"])?.iter().map(|row| row["total_ns"].as_u64());
        let sum: u64 = rows.sum::<Option<u64>>().ok_or("a row of a ledger has no total")?;
        let series = list(&run["series"])?.iter();
        let mut own = series.filter(|series| series["responder"] == ledger["responder"]);
        let own = own.next().ok_or("the run has none of a ledger's responder")?;
        // The mean is of an exact sum, which of thousands of answers it gives back.
        let measured = (number(&own["mean_ns"])? * number(&own["count"])?).round();
        exact += usize::from(sum as f64 == measured);
    }
    let figure = format!("ledgers that sum exactly: {flavour}");
    print(&figure, "all", format!("{exact} of {}", ledgers.len()));
    Ok(())
}

/// The latest answers of somebody who waited, by responder, and how long that took.
struct Waited {
    worst_ns: BTreeMap<String, f64>,
    wall: Duration,
}

impl Waited {
    fn of(runs: &Value, wall: Duration) -> Answer<Waited> {
        let mut worst_ns = BTreeMap::new();
        for series in list(&runs["runs"][0]["series"])? {
            let name = text(&series["responder"]);
            // cyclictest's task is what ours is.
            let name = if name.starts_with("cyclictest") { "task" } else { name };
            worst_ns.insert(name.to_owned(), number(&series["max_ns"])?);
        }
        Ok(Waited { worst_ns, wall })
    }
}

/// A minute of triggers at random, and of cyclictest.
fn wait(flavour: &str, store: &Path) -> Answer<[(&'static str, Waited); 2]> {
    let flavours = format!("flavours=[{flavour:?}]");
    let (runs, wall) = onset(&["run", EXPERIMENT, "--set", &flavours], store)?;
    let random = Waited::of(&runs, wall)?;
    let path = store.join("cyclictest.toml");
    let peer = format!(
        "title = \"cyclictest, for a minute\"\ntarget = \"rig\"\n{flavours}\nloads = [\"mixed\"]\n[cyclictest]\nperiod = \"1ms\"\ncount = {}\n",
        1_000.0 * WAITED_S
    );
    std::fs::write(&path, peer).map_err(|e| e.to_string())?;
    let (runs, wall) = onset(&["run", &path.display().to_string()], store)?;
    Ok([("random", random), ("cyclictest", Waited::of(&runs, wall)?)])
}

/// By what part of the virtual time, and of the wall time, of a minute of triggers at random a hunt is to be as late.
/// The late answer of `preempt=full` first comes six virtual seconds after the warm-up.
fn promised(flavour: &str) -> (f64, f64) {
    if flavour.ends_with("full") { (8.0, 8.0) } else { (100.0, 20.0) }
}

/// Hunts of one flavour with several seeds, against who waits.
fn compare(flavour: &str, store: &Path) -> Answer<()> {
    let waited = wait(flavour, store)?;
    for (who, Waited { worst_ns, wall }) in &waited {
        let worst = worst_ns.iter().map(|(name, ns)| format!("{name} {:.1} µs", ns / 1e3));
        let worst = worst.collect::<Vec<_>>().join(", ");
        print(
            &format!("{flavour}: {who}, a minute"),
            "–",
            format!("{worst} ({} s)", wall.as_secs()),
        );
    }
    let hunt = |seed: u64, wall: Duration| {
        let (seed, budget) = (seed.to_string(), format!("{}s", wall.as_secs().max(1)));
        let how = ["--seed", &seed, "--budget", &budget];
        let whole = [&["hunt", EXPERIMENT, "--flavour", flavour], &how[..]].concat();
        let (hunt, _) = onset(&whole, store)?;
        curve(flavour, &seed, &hunt)?;
        Ok::<Value, String>(hunt)
    };
    let (virtual_share, wall_share) = promised(flavour);
    let [(_, random), (_, cyclictest)] = &waited;
    let brief = SEEDS.map(|seed| hunt(seed, random.wall.div_f64(wall_share)));
    let brief = brief.into_iter().collect::<Answer<Vec<Value>>>()?;
    let longer = hunt(SEEDS[0], random.wall)?;
    for responder in RESPONDERS {
        for (who, waited) in [("random", random), ("cyclictest", cyclictest)] {
            let Some(target) = waited.worst_ns.get(responder) else { continue };
            let reached = brief.iter().filter_map(|hunt| reached(hunt, responder, *target));
            let reached: Vec<f64> = reached.map(|at| at / NS_PER_S).collect();
            let figure = format!(
                "  {responder}: hunts as late as {who} in 1/{wall_share} of random's wall time"
            );
            print(&figure, "5 of 5", format!("{} of {}", reached.len(), SEEDS.len()));
            let promised = format!("{:.1}", WAITED_S / virtual_share);
            let figure = format!("  {responder}: virtual s until then");
            print(&figure, &promised, spread(reached, 2));
        }
        let latest = worst(&longer, responder).map_or(Vec::new(), |ns| vec![ns / 1e3]);
        print(
            &format!("  {responder}: worst in the same wall time, seed 1, µs"),
            "–",
            spread(latest, 1),
        );
    }
    Ok(())
}

/// How a hunt's worst grew.
fn curve(flavour: &str, seed: &str, hunt: &Value) -> Answer<()> {
    for responder in RESPONDERS {
        let steps = list(&hunt["growth"])?.iter().filter(|step| step["responder"] == responder);
        let mut points = Vec::new();
        for step in steps {
            let (at, ns) = (number(&step["virtual_ns"])?, number(&step["latency_ns"])?);
            points.push(format!("{:.1} s {:.1} µs", at / NS_PER_S, ns / 1e3));
        }
        print(&format!("  {flavour}, seed {seed}: {responder}"), "–", points.join(", "));
    }
    Ok(())
}

/// Virtual time until a responder was as late as `target`.
fn reached(hunt: &Value, responder: &str, target: f64) -> Option<f64> {
    let steps = hunt["growth"].as_array()?.iter().filter(|step| step["responder"] == responder);
    let mut late = steps.filter(|step| step["latency_ns"].as_f64().is_some_and(|ns| ns >= target));
    late.next()?["virtual_ns"].as_f64()
}

fn worst(hunt: &Value, responder: &str) -> Option<f64> {
    let worst = hunt["worst"].as_array()?.iter().find(|found| found["responder"] == responder)?;
    worst["latency_ns"].as_f64()
}
