// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints `driver/onset_wire.h`.

fn main() {
    print!("{}", wire::header::c_header());
}
