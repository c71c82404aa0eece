// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads numbers from bytes. If the bytes end before a number, the result is `None`.

/// The two bytes at `at`.
#[cfg(feature = "image")]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// The four bytes at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// The eight bytes at `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// The `N` bytes at `at`.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The text that begins at `at` and ends before a NUL. `None` if there is no such text.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let from = bytes.get(at..)?;
    let end = from.iter().position(|b| *b == 0)?;
    std::str::from_utf8(&from[..end]).ok()
}
