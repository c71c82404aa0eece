// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset serve`: serves the page on this machine.

use super::{SystemClock, store};
use crate::arguments::Serve as Arguments;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use serve::{Door, Site};
use view::visible::tell;

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let installation = Installation::find()?;
    let site = Site {
        store: store(&arguments.store.store).root().to_owned(),
        page: installation.site()?,
        viewer: installation.viewer()?,
        issuer: Box::new(SystemClock),
    };
    let (listener, door) = Door::open(arguments.listen)?;
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    if door.is_open_to_others() {
        let port = listener.local_addr().map_err(Failure::unavailable)?.port();
        tell!(
            "other machines can reach this page: it answers whoever has the address with the token. Nothing is encrypted: whoever can \
             listen on the network can read the token and all else. `ssh -L {port}:127.0.0.1:{port} {machine}`, and `onset serve --listen \
             127.0.0.1:{port}` here, encrypt it"
        );
    }
    tell!("{} (Ctrl-C ends it)", door.url(&machine));
    serve::serve((listener, door), site)
        .map_err(|e| Failure::unavailable(format!("the page cannot be served: {e}")))?;
    Ok(Exit::Interrupted)
}
