// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset serve`: serves the page on this machine.

use super::{SystemClock, store};
use crate::arguments::Serve as Arguments;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use serve::Site;
use view::visible::tell;

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let installation = Installation::find()?;
    let site = Site {
        store: store(&arguments.store.store).root().to_owned(),
        page: installation.site()?,
        viewer: installation.viewer()?,
        issuer: Box::new(SystemClock),
    };
    let listener = lab::loopback::listen(arguments.listen)?;
    let address = listener.local_addr().map_err(Failure::unavailable)?;
    tell!("http://{address}/ (Ctrl-C ends it)");
    serve::serve(listener, site)
        .map_err(|e| Failure::unavailable(format!("the page cannot be served: {e}")))?;
    Ok(Exit::Interrupted)
}
