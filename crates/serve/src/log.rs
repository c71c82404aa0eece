// SPDX-License-Identifier: GPL-2.0-or-later
//! The latencies of a live generator as a table that grows while they come.

use crate::State;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use lab::live::table::HEAD;
use std::io;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;

/// `/api/live/log.csv`: the latencies from now on, until the run ends. If the reader is too slow for them, the download
/// fails: no table has a gap that nobody sees.
pub async fn log(shared: State) -> Result<Response, (StatusCode, String)> {
    let none = || (StatusCode::CONFLICT, "no generator is connected\n".to_owned());
    let lines = shared.live.log().ok_or_else(none)?;
    let heads = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"onset-live.csv\""),
    ];
    let parts = try_unfold((lines, true), |(lines, is_first)| async move {
        match is_first {
            true => Ok(Some((Bytes::from(HEAD), (lines, false)))),
            false => part(lines).await,
        }
    });
    Ok((heads, Body::from_stream(parts)).into_response())
}

type Part = Option<(Bytes, (Receiver<Arc<str>>, bool))>;

async fn part(mut lines: Receiver<Arc<str>>) -> io::Result<Part> {
    match lines.recv().await {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some((Bytes::copy_from_slice(text.as_bytes()), (lines, false)))),
        Err(e) => Err(io::Error::other(e)),
    }
}
