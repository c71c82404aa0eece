// SPDX-License-Identifier: GPL-2.0-or-later
//! How many of something, in words.

/// As in `1 trigger`, `2 triggers`, `2 stretches`.
pub fn several(n: u64, what: &str) -> String {
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}{plural}") }
}

#[cfg(test)]
mod tests {
    use super::several;

    #[test]
    fn one_has_no_plural() {
        let said = [0, 1, 2].map(|n| several(n, "other stack"));
        assert_eq!(said, ["0 other stacks", "1 other stack", "2 other stacks"]);
        assert_eq!(several(12, "stretch"), "12 stretches");
    }
}
