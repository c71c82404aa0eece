// SPDX-License-Identifier: GPL-2.0-or-later
//! The live generator of the page. One conversation at a time goes on in a thread of its own; every page that is open
//! is told how it stands. A page that does not read is told later, and holds up nobody.

mod place;

use crate::State;
use crate::edges::{EdgesTold, Latest};
use crate::metrics::Counted;
use axum::Json;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use bundle::RunId;
use futures_util::stream::{Stream, unfold};
use lab::live::{self, Drift, Left, Live, Talk, Wanted};
use lab::matrix::Issuer;
use sample::{Clock, Nanos, Observation};
use serde::{Deserialize, Serialize};
use stats::{COLUMNS_PER_OCTAVE, Column, Series, Slice, Summary, Worst};
use std::convert::Infallible;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, oneshot, watch};
use wire::generator::{Setting, Ticks};
use work::Cancel;

/// How often the pages are told.
const TOLD_EVERY: Duration = Duration::from_millis(250);

/// How many parts of a log wait at most for who reads it.
const LOG_PARTS: usize = 256;
/// How many marks a page is told of: the last ones. The recording has all.
const MARKS_TOLD: usize = 20;

/// What a page is told after a panic.
const FAULT: &str = "onset failed; `onset serve` printed why: please report it";

/// How a conversation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// There is none.
    #[default]
    Idle,
    /// The generator is asked who it is.
    Connecting,
    /// A run goes on.
    Running,
    /// The run is told to stop, and answers are awaited.
    Stopping,
    /// The run has ended.
    Ended,
    /// The conversation failed; the message says why.
    Failed,
}

/// What a page is told. Times are in ns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Told {
    pub standing: Standing,
    pub message: Option<String>,
    pub generator: String,
    pub clock: Option<Clock>,
    pub triggers: u64,
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    #[serde(rename = "period_ns")]
    pub period: Option<Nanos>,
    #[serde(rename = "high_ns")]
    pub high: Option<Nanos>,
    pub damaged_frames: u64,
    pub drift: Option<DriftTold>,
    pub bundle: Option<String>,
    pub marks: Vec<MarkTold>,
    pub channels: Vec<ChannelTold>,
    pub edges: Option<EdgesTold>,
    /// The run that is being recorded.
    #[serde(skip)]
    pub recorded: Option<RunId>,
}

/// How the generator's clock goes beside this machine's.
#[derive(Clone, Debug, Serialize)]
pub struct DriftTold {
    #[serde(flatten)]
    pub drift: Drift,
    pub is_doubtful: bool,
}

/// A note of the user.
#[derive(Clone, Debug, Serialize)]
pub struct MarkTold {
    pub at_ns: Nanos,
    pub triggers: u64,
    pub note: String,
}

/// What a page is told of a responder.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelTold {
    pub summary: Summary,
    pub columns: Vec<Column>,
    pub slices: Vec<Slice>,
    /// For other tools, and not for pages.
    #[serde(skip)]
    pub counted: Counted,
    pub worst: Vec<Worst>,
}

impl Told {
    fn failed(why: String) -> Told {
        Told { standing: Standing::Failed, message: Some(why), ..Told::default() }
    }
}

impl ChannelTold {
    fn of(summary: Summary, series: &Series) -> ChannelTold {
        let mut columns = series.columns(COLUMNS_PER_OCTAVE);
        columns.retain(|column| column.count > 0);
        let (slices, worst) = (series.timeline().buckets(), series.worst().to_vec());
        ChannelTold { summary, columns, slices, counted: Counted::of(series), worst }
    }
}

/// What a page asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    place: String,
    #[serde(default)]
    frequency: Option<String>,
    #[serde(default)]
    duty: Option<String>,
    #[serde(default)]
    jitter: Option<String>,
    #[serde(default)]
    batch: Option<u64>,
    #[serde(default)]
    responders: Vec<String>,
    #[serde(default)]
    count: Option<NonZeroU64>,
    #[serde(default)]
    record: bool,
}

impl Asked {
    fn wanted(&self) -> Result<Wanted, String> {
        fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
            text: Option<&String>,
        ) -> Result<Option<T>, String> {
            let text = text.map(|text| text.trim()).filter(|text| !text.is_empty());
            text.map(|text| text.parse().map_err(|e: T::Err| e.to_string())).transpose()
        }
        let responders = self.responders.iter().map(|name| name.parse());
        Ok(Wanted {
            frequency: read(self.frequency.as_ref())?,
            period: None,
            duty: read(self.duty.as_ref())?,
            jitter: read(self.jitter.as_ref())?,
            batch: self.batch,
            responders: responders.collect::<Result<_, _>>().map_err(|e| format!("{e}"))?,
            count: self.count,
        })
    }
}

enum Order {
    Stop,
    Reset,
    /// A note, and where it is said what is wrong with it.
    Mark(String, oneshot::Sender<Result<(), String>>),
}

/// Where conversations begin, one at a time.
pub struct Desk {
    talk: Mutex<Option<Held>>,
    told: watch::Sender<Arc<Told>>,
    /// Lines of a table of all latencies, for those who read it. An empty text is the end.
    log: broadcast::Sender<Arc<str>>,
}

/// A conversation that goes on, as the desk holds it.
struct Held {
    orders: Sender<Order>,
    cancel: Cancel,
    thread: JoinHandle<()>,
}

impl Default for Desk {
    fn default() -> Desk {
        let (talk, told) = (Mutex::default(), watch::Sender::new(Arc::default()));
        Desk { talk, told, log: broadcast::Sender::new(LOG_PARTS) }
    }
}

impl Desk {
    /// How things stand.
    pub fn told(&self) -> Arc<Told> {
        self.told.borrow().clone()
    }

    /// Ends the conversation, and waits until what it recorded is kept.
    pub fn end(&self) {
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Held { cancel, thread, .. }) = talk {
            cancel.ask();
            // A panic of it was printed, and there is nothing else to do here.
            let _ = thread.join();
        }
    }

    /// The lines of the conversation from now on. `None` where there is none.
    pub fn log(&self) -> Option<broadcast::Receiver<Arc<str>>> {
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = talk.as_ref().is_some_and(|talk| !talk.thread.is_finished());
        goes_on.then(|| self.log.subscribe())
    }

    fn order(&self, order: Order) -> Result<(), (StatusCode, String)> {
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = talk.as_ref().map(|talk| talk.orders.send(order));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err((StatusCode::CONFLICT, "no generator is connected\n".into())),
        }
    }
}

/// `/api/live`: how the conversation stands, as server-sent events.
pub async fn events(shared: State) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let told = shared.live.told.subscribe();
    let stream = unfold((told, true), async |(mut told, is_first)| {
        if !is_first {
            told.changed().await.ok()?;
        }
        let now = told.borrow_and_update().clone();
        let event = Event::default().json_data(&*now).expect("plain data");
        Some((Ok(event), (told, false)))
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

/// `/api/live/start`: connects to a generator, sets it and starts a run.
pub async fn start(shared: State, Json(asked): Json<Asked>) -> Result<(), (StatusCode, String)> {
    let wanted = place::check(&asked.place).and_then(|()| asked.wanted());
    let wanted = wanted.map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    let mut talk = shared.live.talk.lock().unwrap_or_else(PoisonError::into_inner);
    if talk.as_ref().is_some_and(|talk| !talk.thread.is_finished()) {
        return Err((StatusCode::CONFLICT, "a run goes on; stop it first\n".into()));
    }
    let (orders, taken) = channel();
    let (cancel, shared) = (Cancel::default(), shared.0.clone());
    let asked_to = cancel.clone();
    let thread = std::thread::spawn(move || {
        asked_to.during(|| {
            let store = asked.record.then(|| shared.site.store.clone());
            let issuer = shared.site.issuer.as_ref();
            let desk = &shared.live;
            let talk = || converse(&asked.place, &wanted, (store, issuer), (&taken, desk));
            // A fault of onset is printed by its thread; the page is not to wait for it.
            if catch_unwind(AssertUnwindSafe(talk)).is_err() {
                desk.told.send_replace(Arc::new(Told::failed(FAULT.into())));
            }
            // Nobody may read the log.
            let _ = desk.log.send("".into());
        });
    });
    *talk = Some(Held { orders, cancel, thread });
    Ok(())
}

/// `/api/live/stop`: ends the run.
pub async fn stop(shared: State) -> Result<(), (StatusCode, String)> {
    shared.live.order(Order::Stop)
}

/// `/api/live/reset`: forgets the numbers so far.
pub async fn reset(shared: State) -> Result<(), (StatusCode, String)> {
    shared.live.order(Order::Reset)
}

/// A note of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noted {
    note: String,
}

/// `/api/live/mark`: keeps a note with the present time.
pub async fn mark(shared: State, Json(noted): Json<Noted>) -> Result<(), (StatusCode, String)> {
    let (answer, answered) = oneshot::channel();
    shared.live.order(Order::Mark(noted.note, answer))?;
    let gone = || (StatusCode::CONFLICT, "the run has ended\n".into());
    let taken = answered.await.map_err(|_| gone())?;
    taken.map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))
}

type Recorded<'a> = (Option<PathBuf>, &'a dyn Issuer);

/// One conversation, from connecting to its end.
fn converse(
    place: &str,
    wanted: &Wanted,
    (store, issuer): Recorded<'_>,
    (orders, desk): (&Receiver<Order>, &Desk),
) {
    let told = &desk.told;
    told.send_replace(Arc::new(Told { standing: Standing::Connecting, ..Told::default() }));
    let recorded = store.as_deref().map(|store| (store, issuer));
    let begun = Live::connect(place).and_then(|live| Talk::begin(live, wanted, recorded));
    let (mut talk, note) = match begun {
        Ok(begun) => begun,
        Err(e) => {
            told.send_replace(Arc::new(Told::failed(e.to_string())));
            return;
        }
    };
    let mut latest = Latest::of(talk.live());
    let followed = follow(&mut talk, (orders, desk), note.as_deref(), &mut latest);
    let recorded = talk.recorded().cloned();
    let (bundle, failure) = match talk.finish(followed.err().map(|e| e.to_string())) {
        Ok(Left { bundle, failure }) => (bundle, failure),
        Err(e) => (None, Some(e.to_string())),
    };
    let standing = if failure.is_some() { Standing::Failed } else { Standing::Ended };
    let mut last = tell(&talk, standing, failure.or(note));
    last.recorded = recorded.filter(|_| bundle.is_some());
    let kept = bundle.as_deref().and_then(Path::file_name);
    last.edges = Some(latest.tell());
    last.bundle = kept.map(|name| name.to_string_lossy().into_owned());
    told.send_replace(Arc::new(last));
}

fn follow(
    talk: &mut Talk,
    (orders, desk): (&Receiver<Order>, &Desk),
    note: Option<&str>,
    latest: &mut Latest,
) -> Result<(), lab::Error> {
    let mut last = None::<Instant>;
    let names: Vec<_> = talk.live().channels().iter().map(|c| c.responder.name()).collect();
    loop {
        let mut lines = String::new();
        let is_read = desk.log.receiver_count() > 0;
        let mut each = |observed| {
            latest.take(&observed);
            match observed {
                Observation::Sample(sample) if is_read => {
                    live::table::row(&mut lines, &sample, &names)
                }
                _ => {}
            }
        };
        let stands = talk.step(&mut each)?;
        if !lines.is_empty() {
            let _ = desk.log.send(lines.into());
        }
        let standing = match stands {
            live::Standing::Running => Standing::Running,
            live::Standing::Stopping => Standing::Stopping,
            live::Standing::Ended => return Ok(()),
        };
        if last.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            last = Some(Instant::now());
            let edges = Some(latest.tell());
            let now = tell(talk, standing, note.map(str::to_owned));
            desk.told.send_replace(Arc::new(Told { edges, ..now }));
        }
        match orders.try_recv() {
            Ok(Order::Reset) => talk.reset(),
            Ok(Order::Stop) => talk.stop()?,
            // Whoever asked may be gone.
            Ok(Order::Mark(note, answer)) => {
                drop(answer.send(talk.mark(&note).map_err(|e| e.to_string())));
            }
            Err(_) => {}
        }
        if work::is_cancelled() {
            talk.stop()?;
        }
    }
}

fn tell(talk: &Talk, standing: Standing, message: Option<String>) -> Told {
    let live = talk.live();
    let marks = live.marks().iter().rev().take(MARKS_TOLD).rev();
    let marks = marks.map(|mark| MarkTold {
        at_ns: mark.elapsed,
        triggers: mark.triggers,
        note: mark.note.clone(),
    });
    let nanos = |setting| live.tick().nanos(Ticks(live.settings().get(setting))).map(|(n, _)| n);
    let channels = live.channels().iter().map(|channel| {
        let summary = Summary { losses: channel.losses, ..channel.series.summary() };
        ChannelTold::of(summary, &channel.series)
    });
    Told {
        standing,
        message,
        generator: live.name(),
        clock: Some(live.clock()),
        triggers: live.triggers(),
        measured: live.elapsed(),
        period: nanos(Setting::Period),
        high: nanos(Setting::High),
        damaged_frames: live.damaged(),
        drift: live.drift().map(|drift| DriftTold { drift, is_doubtful: drift.is_doubtful() }),
        bundle: None,
        marks: marks.collect(),
        channels: channels.collect(),
        edges: None,
        recorded: talk.recorded().cloned(),
    }
}

/// A page with one responder, for tests.
#[cfg(test)]
pub fn example() -> Told {
    use sample::{Loss, Losses, Responder, Sample, SeriesId};
    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    for (trigger, latency) in (0..).zip([5_000, 6_000, 900_000].map(Nanos)) {
        let at = Nanos(trigger * 1_000_000);
        series.record(&Sample { series: SeriesId(0), trigger, at, latency, path: None });
    }
    let mut losses = Losses::default();
    losses.count(Loss::Superseded, 4);
    let summary = Summary { losses, ..series.summary() };
    let (gain_ppb, uncertainty_ppb, batches) = (40_100, 2_300, 60);
    let (started, span) = (Nanos(5_000_000_000), Nanos(3_000_000));
    let drift = Drift { gain_ppb, uncertainty_ppb, started, span, batches };
    Told {
        standing: Standing::Running,
        generator: "a guest".into(),
        clock: Some(Clock::Virtual),
        triggers: 7,
        measured: Nanos(3_000_000),
        period: Some(Nanos(1_000_000)),
        high: Some(Nanos(100_000)),
        drift: Some(DriftTold { drift, is_doubtful: false }),
        channels: vec![ChannelTold::of(summary, &series)],
        ..Told::default()
    }
}
