// SPDX-License-Identifier: GPL-2.0-or-later
//! The page of onset: the runs of a store, their reports, and a live generator, over HTTP.
//!
//! It answers nobody who came by another name, and nobody on another machine who has no token ([`guard`]). It reads
//! bundles and changes none; a run that is thrown away goes to a bin. What is measured live goes on in a thread of its
//! own ([`live`]); the page is told of it by server-sent events.

mod edges;
mod guard;
mod live;
mod log;
mod metrics;
mod native;
mod runs;

pub use guard::{Door, Token};

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::Html;
use axum::routing::{get, post};
use axum::{Router, ServiceExt};
use bundle::store::Store;
use lab::matrix::Issuer;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use tower_layer::Layer;

/// What is served.
pub struct Site {
    /// The directory of the bundles.
    pub store: PathBuf,
    /// The page.
    pub page: String,
    /// The viewer, in which a report is put.
    pub viewer: String,
    /// The time, and this onset.
    pub issuer: Box<dyn Issuer + Send>,
}

/// What every answer may need.
struct Shared {
    site: Site,
    /// Remembers from one list to the next.
    store: Store,
    live: live::Desk,
}

type State = axum::extract::State<Arc<Shared>>;

/// Serves on the listener of a door, until this thread's work is cancelled.
///
/// # Errors
/// Those of the system.
pub fn serve((listener, door): (TcpListener, Door), site: Site) -> io::Result<()> {
    let shared =
        Arc::new(Shared { store: Store::at(&site.store), site, live: live::Desk::default() });
    // One thread answers, and others read bundles for it: the machine may be measuring meanwhile.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        // Before the paths are told apart: they may begin with a token.
        let guarded = from_fn_with_state(Arc::new(door), guard::check).layer(routes(shared.clone()));
        tokio::select! {
            served = axum::serve(listener, ServiceExt::<Request>::into_make_service(guarded)) => served,
            () = cancelled() => Ok(()),
        }
    });
    shared.live.end();
    // Nobody waits for a reader that does not read.
    runtime.shutdown_background();
    served
}

fn routes(shared: Arc<Shared>) -> Router {
    let page = shared.site.page.clone();
    Router::new()
        .route("/", get(async move || Html(page.clone())))
        .route("/report", get(runs::report))
        .route("/api/runs", get(runs::list))
        .route("/api/runs/discard", post(runs::discard))
        .route("/api/runs/restore", post(runs::restore))
        .route("/api/bin", get(runs::bin))
        .route("/api/history", get(runs::history))
        .route("/{run}/{file}", get(runs::file))
        .route("/{run}/{directory}/{file}", get(runs::file_below))
        .route("/api/live", get(live::events))
        .route("/api/live/start", post(live::start))
        .route("/api/live/stop", post(live::stop))
        .route("/api/live/reset", post(live::reset))
        .route("/api/live/mark", post(live::mark))
        .route("/api/live/log.csv", get(log::log))
        .route("/metrics", get(metrics::metrics))
        .with_state(shared)
        .layer(axum::extract::DefaultBodyLimit::max(64 * 1024))
}

/// Waits until the work of the thread that serves is cancelled.
async fn cancelled() {
    while !work::is_cancelled() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests;
