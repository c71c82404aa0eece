// SPDX-License-Identifier: GPL-2.0-or-later
//! Who is answered. A page of another site may send requests to a loopback address, and a name that it owns may lead
//! there (DNS rebinding); so what a request says of itself has to fit: the host that it asks for, and the site that it
//! comes from.
//!
//! Where other machines can reach the page, its paths begin with a secret, the token. So every link of the page and of
//! a report carries it, and so do events and downloads, without a cookie. Whoever has no token is told nothing.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::fmt;
use std::hint::black_box;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// Set by browsers, and by nobody else.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What every answer says. A page says itself what it may load (its own policy); this is for everything else.
const SAID: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    // Addresses of this page may hold its token.
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'; object-src 'none'; base-uri 'none'"),
];

/// A secret of 128 random bits, in hexadecimal.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    fn random() -> Result<Token, lab::Error> {
        let mut bits = [0_u8; 16];
        let got = rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty());
        // The kernel gives so few at once or not at all.
        if got != Ok(bits.len()) {
            return Err(lab::Error::File("the kernel gives no random bits".into()));
        }
        Ok(Token(bits.map(|byte| format!("{byte:02x}")).concat()))
    }

    /// Whether this is the token. How long that takes says nothing of where they differ.
    fn is(&self, said: &str) -> bool {
        let (own, said) = (self.0.as_bytes(), said.as_bytes());
        let differing = own.iter().zip(said).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        own.len() == said.len() && differing == 0
    }
}

/// Never printed by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where the page is reached.
#[derive(Clone, Debug)]
pub struct Door {
    address: SocketAddr,
    /// Where other machines can reach it.
    token: Option<Token>,
}

impl Door {
    /// Listens; port 0 takes a free one. On an address that other machines can reach, the door has a token.
    ///
    /// # Errors
    /// Where it cannot listen there, with the reason.
    pub fn open(address: SocketAddr) -> Result<(TcpListener, Door), lab::Error> {
        let is_ours = address.ip().is_loopback();
        let listener = lab::loopback::bind(address)?;
        let token = if is_ours { None } else { Some(Token::random()?) };
        let address = listener.local_addr();
        let address =
            address.map_err(|e| lab::Error::File(format!("the listening socket: {e}")))?;
        Ok((listener, Door { address, token }))
    }

    /// The address of the page, with its token where it has one. `machine` is the machine's name, for a door that
    /// listens on all its addresses.
    pub fn url(&self, machine: &str) -> String {
        let port = self.address.port();
        let place = match self.address.ip().is_unspecified() {
            true => format!("{machine}:{port}"),
            false => self.address.to_string(),
        };
        match &self.token {
            Some(Token(token)) => format!("http://{place}/{token}/"),
            None => format!("http://{place}/"),
        }
    }

    /// Whether other machines can reach it.
    pub fn is_open_to_others(&self) -> bool {
        self.token.is_some()
    }

    /// What a request asks for, without the token. `None` where it has none.
    fn within(&self, asked: &Uri) -> Option<Uri> {
        let Some(token) = &self.token else { return Some(asked.clone()) };
        let whole = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        let (said, rest) = whole.strip_prefix('/')?.split_once('/')?;
        if !token.is(said) {
            return None;
        }
        format!("/{rest}").parse().ok()
    }
}

/// Answers a request that fits, and refuses every other.
pub async fn check(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let refused = refusal(request.headers(), &door);
    let mut response = match (refused, door.within(request.uri())) {
        (Some(why), _) => (StatusCode::FORBIDDEN, why).into_response(),
        (None, None) => (
            StatusCode::FORBIDDEN,
            "this page is reached by the address that `onset serve` printed, which holds a token\n",
        )
            .into_response(),
        (None, Some(uri)) => {
            *request.uri_mut() = uri;
            next.run(request).await
        }
    };
    for (name, value) in SAID {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused.
fn refusal(headers: &HeaderMap, door: &Door) -> Option<&'static str> {
    let said = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let ours = match &door.token {
        None => own_names(door.address),
        // The machine has names that nobody knows here. Another site does not know the token.
        Some(_) => said(&HOST).map(str::to_owned).into_iter().collect(),
    };
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

/// What a browser calls an address of this machine. Of the port that `http` has anyway it may say nothing.
fn own_names(address: SocketAddr) -> Vec<String> {
    let mut names = vec![address.to_string(), format!("localhost:{}", address.port())];
    let short = names.iter().filter_map(|name| name.strip_suffix(":80").map(str::to_owned));
    let short: Vec<String> = short.filter(|_| address.port() == 80).collect();
    names.extend(short);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(token: Option<&str>) -> Door {
        let address = "127.0.0.1:7080".parse().expect("an address");
        Door { address, token: token.map(|token| Token(token.into())) }
    }

    fn refused_at(door: &Door, host: &str, more: &[(HeaderName, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a value"));
        for (name, value) in more {
            headers.insert(name.clone(), value.parse().expect("a value"));
        }
        refusal(&headers, door).is_some()
    }

    fn refused(host: &str, more: &[(HeaderName, &str)]) -> bool {
        refused_at(&door(None), host, more)
    }

    #[test]
    fn a_request_is_answered_by_its_own_address_and_from_its_own_page() {
        assert!(!refused("127.0.0.1:7080", &[]));
        assert!(!refused("localhost:7080", &[(ORIGIN, "http://localhost:7080")]));
        assert!(!refused("127.0.0.1:7080", &[(SITE, "same-origin")]));
        assert!(!refused("127.0.0.1:7080", &[(SITE, "none")]));
    }

    #[test]
    fn at_the_port_of_http_a_browser_names_none() {
        for (address, host) in [("127.0.0.1:80", "127.0.0.1"), ("[::1]:80", "[::1]")] {
            let door = Door { address: address.parse().expect("an address"), token: None };
            for host in [host, "localhost", address, "localhost:80"] {
                assert!(!refused_at(&door, host, &[]), "{host}");
                let origin = format!("http://{host}");
                assert!(!refused_at(&door, host, &[(ORIGIN, &origin)]), "{host}");
            }
            for host in ["evil.example", "evil.example:80", "127.0.0.1:81", "localhost:"] {
                assert!(refused_at(&door, host, &[]), "{host}");
            }
        }
        // 7080 ends in the same digits.
        assert!(refused("127.0.0.1:70", &[]) && refused("localhost", &[]));
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
        assert!(refusal(&HeaderMap::new(), &door(None)).is_some());
    }

    #[test]
    fn where_there_is_a_token_any_name_will_do_and_another_site_still_will_not() {
        let open = door(Some("aa"));
        assert!(!refused_at(&open, "bench.example:7080", &[]));
        assert!(!refused_at(&open, "a.example:1", &[(ORIGIN, "http://a.example:1")]));
        assert!(refused_at(&open, "a.example:1", &[(ORIGIN, "http://evil.example")]));
        assert!(refused_at(&open, "a.example:1", &[(SITE, "cross-site")]));
        assert!(refusal(&HeaderMap::new(), &open).is_some());
    }

    #[test]
    fn a_path_without_the_token_leads_nowhere_and_with_it_to_what_follows() {
        let within = |token, path: &str| door(token).within(&path.parse().expect("a path"));
        assert_eq!(within(None, "/api/runs?x=1").expect("no token"), "/api/runs?x=1");
        assert_eq!(within(Some("0af"), "/0af/api/runs?x=/y").expect("ours"), "/api/runs?x=/y");
        assert_eq!(within(Some("0af"), "/0af/").expect("ours"), "/");
        for path in ["/", "/0af", "/0a/", "/0aff/", "/0AF/", "/api/runs", "//0af/", "/?0af/"] {
            assert!(within(Some("0af"), path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_token_is_random_and_long_and_is_shown_by_the_address_alone() {
        let [one, other] = [(); 2].map(|()| Token::random().expect("random bits"));
        assert!(one.0.len() == 32 && one.0 != other.0 && one.is(&one.0) && !one.is(&other.0));
        let (_listener, door) =
            Door::open("0.0.0.0:0".parse().expect("an address")).expect("a port");
        assert!(door.is_open_to_others());
        let Some(Token(token)) = &door.token else { panic!("others can reach it") };
        let port = door.address.port();
        assert_eq!(door.url("bench"), format!("http://bench:{port}/{token}/"));
        assert!(!format!("{door:?}").contains(token));
        let (_listener, door) =
            Door::open("127.0.0.1:0".parse().expect("an address")).expect("a port");
        assert_eq!(door.url("bench"), format!("http://{}/", door.address));
    }
}
