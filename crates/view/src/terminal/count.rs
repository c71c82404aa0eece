// SPDX-License-Identifier: GPL-2.0-or-later
//! How many of something, in words.

use sample::Losses;

/// As in `1 trigger`, `2 triggers`, `2 stretches`.
pub fn several(n: u64, what: &str) -> String {
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}{plural}") }
}

/// What was lost, as in `3 unanswered, 1 superseded`; nothing if nothing was.
pub fn named(losses: &Losses) -> Option<String> {
    let counts = losses.named().into_iter().filter(|(_, n)| *n > 0);
    let parts: Vec<String> = counts.map(|(name, n)| format!("{n} {name}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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
