// SPDX-License-Identifier: GPL-2.0-or-later
//! The page of onset: the runs of a store, their reports, and a live generator, over HTTP.
//!
//! It listens on a loopback address alone, and answers nobody who came by another name ([`guard`]). It reads bundles
//! and changes none. What is measured live goes on in a thread of its own ([`live`]); the page is told of it by
//! server-sent events.

mod edges;
mod guard;
mod live;
mod metrics;
mod runs;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Html;
use axum::routing::{get, post};
use lab::matrix::Issuer;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

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
    live: live::Desk,
}

type State = axum::extract::State<Arc<Shared>>;

/// Serves on a listener of [`lab::loopback`], until this thread's work is cancelled.
///
/// # Errors
/// Those of the system.
pub fn serve(listener: TcpListener, site: Site) -> io::Result<()> {
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared { site, live: live::Desk::default() });
    // One thread answers, and others read bundles for it: the machine may be measuring meanwhile.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let routes = routes(shared.clone(), address);
        tokio::select! {
            served = axum::serve(listener, routes) => served,
            () = cancelled() => Ok(()),
        }
    });
    shared.live.end();
    // Nobody waits for a reader that does not read.
    runtime.shutdown_background();
    served
}

fn routes(shared: Arc<Shared>, address: SocketAddr) -> Router {
    let page = shared.site.page.clone();
    Router::new()
        .route("/", get(async move || Html(page.clone())))
        .route("/report", get(runs::report))
        .route("/api/runs", get(runs::list))
        .route("/{run}/{file}", get(runs::file))
        .route("/{run}/{directory}/{file}", get(runs::file_below))
        .route("/api/live", get(live::events))
        .route("/api/live/start", post(live::start))
        .route("/api/live/stop", post(live::stop))
        .route("/api/live/reset", post(live::reset))
        .route("/metrics", get(metrics::metrics))
        .with_state(shared)
        .layer(axum::extract::DefaultBodyLimit::max(64 * 1024))
        .layer(from_fn_with_state(address, guard::check))
}

/// Waits until the work of the thread that serves is cancelled.
async fn cancelled() {
    while !work::is_cancelled() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests;
