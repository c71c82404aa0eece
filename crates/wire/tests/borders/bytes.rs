// SPDX-License-Identifier: GPL-2.0-or-later
//! Bytes as the golden files have them.

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a file of `golden/`.
pub fn golden(name: &str) -> String {
    let path = format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}
