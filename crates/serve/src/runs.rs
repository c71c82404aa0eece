// SPDX-License-Identifier: GPL-2.0-or-later
//! The runs of the store: their list, their bin, a report of any of them, how they went over time, and the files of
//! their bundles.

use crate::State;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use bundle::store::{Entry, Headline, Store, StoreError};
use bundle::{Bundle, Details, MANIFEST, RunId};
use confined::Directory;
use futures_util::stream::try_unfold;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path as FilePath;
use view::report::{self, Material};
use view::results::{History, List};

/// The most runs of one report: each costs as much as its samples' drawing.
const RUNS_MAX: usize = 64;
/// The most runs of a history, of which the newest are shown.
const HISTORY_MAX: usize = 200;
/// How much of a file is in memory at once.
const PART: u64 = 64 * 1024;

/// An error as an answer: a text for people.
type Failed = (StatusCode, String);

fn failed(e: impl std::fmt::Display) -> Failed {
    (StatusCode::UNPROCESSABLE_ENTITY, format!("{e}\n"))
}

fn missing() -> Failed {
    (StatusCode::NOT_FOUND, "there is no such run, or it has no such file\n".into())
}

/// Does what reads files in a thread of its own.
async fn reading<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    tokio::task::spawn_blocking(what).await.map_err(failed)?
}

/// `/api/runs`: what `onset list --json` prints.
pub async fn list(shared: State) -> Result<Response, Failed> {
    listed(shared, Store::list).await
}

/// `/api/bin`: the runs in the bin, in the same form.
pub async fn bin(shared: State) -> Result<Response, Failed> {
    listed(shared, Store::discarded).await
}

async fn listed(
    shared: State,
    list: fn(&Store) -> Result<Vec<Entry>, StoreError>,
) -> Result<Response, Failed> {
    let json = reading(move || {
        let entries = list(&shared.store).map_err(failed)?;
        Ok(serde_json::to_string(&List::of(&entries)).expect("plain data"))
    });
    Ok(json_of(json.await?))
}

fn json_of(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// The run that a page means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    run: String,
}

/// `/api/runs/discard`: moves a run to the bin.
pub async fn discard(shared: State, Json(meant): Json<Meant>) -> Result<(), Failed> {
    moved(shared, meant, Store::discard).await
}

/// `/api/runs/restore`: brings a run back from the bin.
pub async fn restore(shared: State, Json(meant): Json<Meant>) -> Result<(), Failed> {
    moved(shared, meant, Store::restore).await
}

async fn moved(
    shared: State,
    meant: Meant,
    to: fn(&Store, &RunId) -> Result<(), StoreError>,
) -> Result<(), Failed> {
    let run: RunId = meant.run.parse().map_err(|_| missing())?;
    reading(move || to(&shared.store, &run).map_err(failed)).await
}

/// Which runs a history has. What is absent is not asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    title: Option<String>,
    flavour: Option<String>,
    load: Option<String>,
    instrument: Option<String>,
    /// Whose numbers; absent: those of the last responder of the newest run.
    responder: Option<String>,
}

impl Asked {
    fn takes(&self, headline: &Headline) -> bool {
        let is =
            |asked: &Option<String>, own: &str| asked.as_deref().is_none_or(|name| name == own);
        is(&self.title, &headline.title)
            && is(&self.flavour, &headline.flavour)
            && is(&self.load, &headline.load)
            && is(&self.instrument, &headline.instrument)
    }
}

/// `/api/history?title=…&flavour=…&load=…&instrument=…&responder=…`: how runs of one experiment went over time.
pub async fn history(shared: State, Query(asked): Query<Asked>) -> Result<Response, Failed> {
    let json = reading(move || {
        let store = &shared.site.store;
        let mut names: Vec<RunId> = shared
            .store
            .list()
            .map_err(failed)?
            .into_iter()
            .filter(|entry| entry.state.as_ref().is_ok_and(|headline| asked.takes(headline)))
            .map(|entry| entry.run)
            .collect();
        let omitted = names.len().saturating_sub(HISTORY_MAX);
        names.truncate(HISTORY_MAX);
        // The oldest first, as time goes.
        names.reverse();
        let opened: Vec<(Bundle, Vec<Details>)> = names
            .iter()
            .filter_map(|run| {
                let bundle = Bundle::open(&store.join(run.as_str())).ok()?;
                let details = bundle.details().ok()?;
                Some((bundle, details))
            })
            .collect();
        let damaged = names.len() - opened.len();
        let history = History::of(&opened, asked.responder.as_deref(), (omitted, damaged));
        Ok(serde_json::to_string(&history).expect("plain data"))
    });
    Ok(json_of(json.await?))
}

/// `/report?run=NAME&run=NAME`: the report of these runs.
pub async fn report(
    shared: State,
    Query(asked): Query<Vec<(String, String)>>,
) -> Result<Html<String>, Failed> {
    let names: Vec<String> =
        asked.into_iter().filter(|(key, _)| key == "run").map(|(_, name)| name).collect();
    if names.len() > RUNS_MAX {
        return Err(failed(format!("a report here has at most {RUNS_MAX} runs")));
    }
    let page = reading(move || {
        let site = &shared.site;
        let opened = names.iter().map(|name| open(&site.store, name));
        let bundles = opened.collect::<Result<Vec<_>, _>>()?;
        let material =
            Material { bundles: &bundles, insides: &BTreeMap::new(), hunts: &[], proof: None };
        let (now, tool) = (site.issuer.now(), site.issuer.tool());
        // Its links to raw data then lead to `file`.
        let output = site.store.join("report.html");
        report::page(&output, &site.viewer, &material, (now, &tool)).map_err(failed)
    });
    Ok(Html(page.await?))
}

/// `/RUN/FILE`: a file of a bundle.
pub async fn file(
    shared: State,
    Path((run, file)): Path<(String, String)>,
) -> Result<Response, Failed> {
    read(shared, run, file).await
}

/// `/RUN/DIRECTORY/FILE`.
pub async fn file_below(
    shared: State,
    Path((run, directory, file)): Path<(String, String, String)>,
) -> Result<Response, Failed> {
    read(shared, run, format!("{directory}/{file}")).await
}

async fn read(shared: State, run: String, file: String) -> Result<Response, Failed> {
    let kind = match file.rsplit('.').next() {
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let opened = reading(move || {
        let bundle = open(&shared.site.store, &run)?;
        // Nothing but what the bundle itself lists.
        if file != MANIFEST && !bundle.manifest().files.contains_key(&file) {
            return Err(missing());
        }
        let directory = Directory::open(bundle.path()).map_err(failed)?;
        let opened = match file.split_once('/') {
            Some((below, name)) => directory.directory(below).and_then(|d| d.file(name)),
            None => directory.file(&file),
        };
        let opened = opened.map_err(failed)?;
        let length = opened.metadata().map_err(failed)?.len();
        Ok((opened, length))
    });
    let (file, length) = opened.await?;
    let heads = [(CONTENT_TYPE, kind.to_owned()), (CONTENT_LENGTH, length.to_string())];
    let parts = try_unfold((file, length), |(file, left)| async move { part(file, left).await });
    Ok((heads, Body::from_stream(parts)).into_response())
}

type Part = Option<(Bytes, (File, u64))>;

/// The next part of a file of which so much is left, and what is left then. A file that became shorter meanwhile is an
/// error, and one that became longer is cut: a bundle does not change.
async fn part(mut file: File, left: u64) -> io::Result<Part> {
    if left == 0 {
        return Ok(None);
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; left.min(PART) as usize];
        file.read_exact(&mut bytes).map(|()| (bytes, file))
    });
    let (bytes, file) = read.await.map_err(io::Error::other)??;
    let left = left - bytes.len() as u64;
    Ok(Some((Bytes::from(bytes), (file, left))))
}

/// A run by its whole name, so that no name leads out of the store.
fn open(store: &FilePath, name: &str) -> Result<Bundle, Failed> {
    let run: RunId = name.parse().map_err(|_| missing())?;
    let path = store.join(run.as_str());
    if !path.join(MANIFEST).is_file() {
        return Err(missing());
    }
    Bundle::open(&path).map_err(failed)
}
