// SPDX-License-Identifier: GPL-2.0-or-later
//! The runs of the store: their list, a report of any of them, and the files of their bundles.

use crate::State;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use bundle::store::Store;
use bundle::{Bundle, MANIFEST, RunId};
use confined::Directory;
use std::collections::BTreeMap;
use std::path::Path as FilePath;
use view::report::{self, Material};
use view::results::List;

/// The most runs of one report: each costs as much as its samples' drawing.
const RUNS_MAX: usize = 64;
/// The longest file that is handed out at once.
const FILE_MAX: u64 = 1 << 30;

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
    let json = reading(move || {
        let entries = Store::at(&shared.site.store).list().map_err(failed)?;
        Ok(serde_json::to_string(&List::of(&entries)).expect("plain data"))
    });
    Ok(([(CONTENT_TYPE, "application/json")], json.await?).into_response())
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
        let material = Material { bundles: &bundles, insides: &BTreeMap::new(), hunts: &[] };
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
    let bytes = reading(move || {
        let bundle = open(&shared.site.store, &run)?;
        // Nothing but what the bundle itself lists.
        if file != MANIFEST && !bundle.manifest().files.contains_key(&file) {
            return Err(missing());
        }
        let directory = Directory::open(bundle.path()).map_err(failed)?;
        let read = match file.split_once('/') {
            Some((below, name)) => directory.directory(below).and_then(|d| d.read(name, FILE_MAX)),
            None => directory.read(&file, FILE_MAX),
        };
        read.map_err(failed)
    });
    Ok(([(CONTENT_TYPE, kind)], bytes.await?).into_response())
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
