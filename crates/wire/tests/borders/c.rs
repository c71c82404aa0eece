// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs in C that stand at the other end of a border.

use std::process::Command;

/// Compiles `source`, a file of the tests, with these options beside all warnings as errors. The path of the program,
/// which belongs to this process; `None` where this machine has no compiler.
pub fn compiled(source: &str, options: &[&str]) -> Option<String> {
    let name = source.replace(['/', '.'], "-");
    let program = format!("{}/{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror"]).args(options);
    compiler.args([&format!("{}/tests/{source}", env!("CARGO_MANIFEST_DIR")), "-o", &program]);
    let compiled = match compiler.output() {
        Ok(compiled) => compiled,
        Err(e) => {
            eprintln!("skipped: cc: {e}");
            return None;
        }
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}
