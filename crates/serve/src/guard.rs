// SPDX-License-Identifier: GPL-2.0-or-later
//! Who is answered. A page of another site may send requests to a loopback address, and a name that it owns may lead
//! there (DNS rebinding); so what a request says of itself has to fit: the host that it asks for, and the site that it
//! comes from.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;

/// Set by browsers, and by nobody else.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What every answer says. A page says itself what it may load (its own policy); this is for everything else.
const SAID: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'; object-src 'none'; base-uri 'none'"),
];

/// Answers a request that fits, and refuses every other.
pub async fn check(State(address): State<SocketAddr>, request: Request, next: Next) -> Response {
    let mut response = match refusal(request.headers(), address) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in SAID {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused.
fn refusal(headers: &HeaderMap, address: SocketAddr) -> Option<&'static str> {
    let said = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let port = address.port();
    let ours = [format!("{address}"), format!("localhost:{port}")];
    if !said(&HOST).is_some_and(|host| ours.iter().any(|own| own == host)) {
        return Some("this page answers to its own address alone\n");
    }
    if said(&ORIGIN).is_some_and(|origin| !ours.iter().any(|own| origin == format!("http://{own}")))
    {
        return Some("another site may not speak to this page\n");
    }
    // Also of a link that somebody follows from another site.
    match said(&SITE) {
        None | Some("same-origin" | "none") => None,
        Some(_) => Some("another site may not speak to this page\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str, more: &[(HeaderName, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a value"));
        for (name, value) in more {
            headers.insert(name.clone(), value.parse().expect("a value"));
        }
        refusal(&headers, "127.0.0.1:7080".parse().expect("an address")).is_some()
    }

    #[test]
    fn a_request_is_answered_by_its_own_address_and_from_its_own_page() {
        assert!(!refused("127.0.0.1:7080", &[]));
        assert!(!refused("localhost:7080", &[(ORIGIN, "http://localhost:7080")]));
        assert!(!refused("127.0.0.1:7080", &[(SITE, "same-origin")]));
        assert!(!refused("127.0.0.1:7080", &[(SITE, "none")]));
    }

    #[test]
    fn another_name_another_site_and_another_scheme_are_refused() {
        for host in ["evil.example", "evil.example:7080", "127.0.0.1", "127.0.0.1:7081", ""] {
            assert!(refused(host, &[]), "{host}");
        }
        for origin in
            ["http://evil.example", "https://127.0.0.1:7080", "null", "http://127.0.0.1:1"]
        {
            assert!(refused("127.0.0.1:7080", &[(ORIGIN, origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "nonsense"] {
            assert!(refused("127.0.0.1:7080", &[(SITE, site)]), "{site}");
        }
        assert!(refusal(&HeaderMap::new(), "127.0.0.1:1".parse().expect("an address")).is_some());
    }
}
