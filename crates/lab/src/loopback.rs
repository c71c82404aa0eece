// SPDX-License-Identifier: GPL-2.0-or-later
//! Where onset listens: on addresses that no other machine can reach. What it serves has no password, so that whoever
//! may speak to it has an account on this machine.

use crate::Error;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listens on a loopback address, without waiting for whoever connects; port 0 takes a free one.
///
/// # Errors
/// [`Error::Unfit`] for an address that other machines could reach, with the way in; [`Error::File`] if it cannot
/// listen there.
pub fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let port = address.port();
    if !address.ip().is_loopback() {
        return Err(Error::Unfit(format!(
            "other machines can reach {address}, and there is no password: listen on 127.0.0.1, and let another machine in by `ssh -L {port}:127.0.0.1:{port}`"
        )));
    }
    bind(address)
}

/// Listens on any address, without waiting for whoever connects; port 0 takes a free one. Whoever listens where other
/// machines can reach it asks them for a secret.
///
/// # Errors
/// [`Error::File`] if it cannot listen there.
pub fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let port = address.port();
    let failed = |e: io::Error| {
        Error::File(format!(
            "cannot listen on {address}: {e}; is another program there? `ss -ltnp 'sport = {port}'` tells, or take another port by --listen (0 for a free one)"
        ))
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
