// SPDX-License-Identifier: GPL-2.0-or-later
//! The processor's architecture: each room keeps what it knows of x86-64 in one module, `x86_64`, so that another
//! architecture is another module beside it.
//!
//! The test looks at names and texts in code, not at comments, attributes of documentation and tests. It cannot see a
//! bare number that holds for x86-64 alone.

use crate::sources::{none_of, written_in};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Parts of names and of texts, in small letters, that only `x86_64` may have.
const PARTS: [&str; 16] = [
    "amd64",
    "asm_",
    "bzimage",
    "i/o apic",
    "ioapic",
    "iretq",
    "orc_unwind",
    "pcpu_hot",
    "pt_regs",
    "qemu-system-",
    "rdtsc",
    "ret_from_fork",
    "syscall_64",
    "sysretq",
    "sysvec",
    "ttys1",
];
/// Whole names and whole texts that only `x86_64` may have: registers and instructions, the magic of an image, ports.
const WHOLE: [&str; 38] = [
    "0x378",
    "asm",
    "cpuid",
    "cr0",
    "cr3",
    "cr4",
    "cs",
    "eflags",
    "fs_base",
    "global_asm",
    "gs_base",
    "hdrs",
    "hlt",
    "iret",
    "k_gs_base",
    "mwait",
    "r10",
    "r11",
    "r12",
    "r13",
    "r14",
    "r15",
    "r8",
    "r9",
    "rax",
    "rbp",
    "rbx",
    "rcx",
    "rdi",
    "rdx",
    "rfl",
    "rflags",
    "rip",
    "rsi",
    "rsp",
    "sysret",
    "target_arch",
    "tsc-early",
];
/// What texts, but no names, may not have: the module itself is named so.
const TEXTS: [&str; 3] = ["x86-64", "x86_64", "arch/x86"];
/// Files that have such a word all the same, and why.
const KNOWN: [(&str, &str, &str); 2] = [
    ("crates/bundle/src/examples.rs", "amd64", "a kernel's release, in an example of a manifest"),
    (
        "crates/onset/src/arguments/examples.rs",
        "bzimage",
        "command lines of the help, as users type them",
    ),
];

/// Whether a file is where a room keeps what it knows of the architecture.
fn is_of_architecture(name: &str) -> bool {
    name.contains("/x86_64/") || name.ends_with("/x86_64.rs")
}

/// Whether a file is a test as a whole.
fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// The names and texts of code.
#[derive(Default)]
struct Words(Vec<(usize, String, bool)>);

impl Words {
    fn of(text: &str) -> Result<Words, String> {
        let mut words = Words::default();
        words.take(text.parse().map_err(|e| format!("{e}"))?);
        Ok(words)
    }

    fn take(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let line = token.span().start().line;
            match token {
                TokenTree::Punct(sign) if sign.as_char() == '#' => {
                    tokens
                        .next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!'));
                    let Some(TokenTree::Group(attribute)) = tokens.next_if(is_attribute) else {
                        continue;
                    };
                    let said = attribute.stream();
                    match said.clone().into_iter().next().map(|word| word.to_string()).as_deref() {
                        Some("doc") => {}
                        Some("cfg") if names_test(said.clone()) => skip_item(&mut tokens),
                        _ => self.take(said),
                    }
                }
                TokenTree::Group(group) => self.take(group.stream()),
                TokenTree::Ident(name) => self.0.push((line, name.to_string(), false)),
                TokenTree::Literal(text) => self.0.push((line, text.to_string(), true)),
                TokenTree::Punct(_) => {}
            }
        }
    }
}

fn is_attribute(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// Whether what follows is compiled for tests alone.
fn names_test(attribute: TokenStream) -> bool {
    attribute.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "test",
        TokenTree::Group(group) => names_test(group.stream()),
        _ => false,
    })
}

/// To the end of the item: its body, or the semicolon.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Punct(sign) if sign.as_char() == ';' => return,
            _ => {}
        }
    }
}

/// What of the architecture a word has.
fn found(word: &str, is_text: bool) -> Option<&'static str> {
    let word = word.to_lowercase();
    let whole = word.trim_start_matches(['b', 'c']).trim_matches('"');
    let part = PARTS.iter().find(|part| word.contains(**part));
    let of_text = TEXTS.iter().find(|part| is_text && word.contains(**part));
    let all = WHOLE.iter().find(|all| **all == whole || **all == word);
    part.or(of_text).or(all).copied()
}

/// The words of the architecture in a source, each with its line.
fn named_in(text: &str) -> Result<Vec<(usize, &'static str)>, String> {
    let words = Words::of(text)?.0.into_iter();
    Ok(words.filter_map(|(line, word, is_text)| Some((line, found(&word, is_text)?))).collect())
}

#[test]
fn a_room_knows_the_architecture_in_one_module() {
    let mut wrong = Vec::new();
    for (name, text) in written_in(&[".rs"]) {
        let is_room = name.starts_with("crates/") && name.contains("/src/");
        if !is_room || is_of_architecture(&name) || is_test(&name) {
            continue;
        }
        let named = named_in(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let is_known =
            |word: &str| KNOWN.iter().any(|(file, known, _)| *file == name && *known == word);
        let named = named.into_iter().filter(|(_, word)| !is_known(word));
        wrong.extend(
            named.map(|(line, word)| format!("{name}:{line}: {word}; x86_64 is its place")),
        );
    }
    none_of(wrong);
}

#[test]
fn an_exception_that_nothing_needs_is_no_longer_one() {
    let sources = written_in(&[".rs"]);
    let is_needed = |file: &str, word: &str| {
        let text = sources.iter().find(|(name, _)| name == file).map(|(_, text)| text);
        text.is_some_and(|text| {
            named_in(text).is_ok_and(|named| named.iter().any(|(_, w)| *w == word))
        })
    };
    let unneeded = KNOWN.iter().filter(|(file, word, _)| !is_needed(file, word));
    none_of(unneeded.map(|(file, word, _)| format!("{file}: {word}")).collect());
}

#[test]
fn words_of_the_architecture_are_found_in_code_and_not_in_comments_and_tests() {
    let words = |text| named_in(text).expect("Rust").into_iter().map(|(_, word)| word).collect();
    let code: Vec<&str> =
        words("fn f() { asm!(\"nop\"); get(c\"rsp\"); let rflags = \"an amd64\"; }");
    assert_eq!(code, ["asm", "rsp", "rflags", "amd64"]);
    let fine: Vec<&str> = words(
        "//! rip\n/// bzImage\nuse crate::x86_64::General; // ioapic\n#[cfg(test)]\nmod tests { fn rsp() {} }",
    );
    assert_eq!(fine, [""; 0]);
    assert_eq!(words("const A: &str = \"usr/lib/x86_64-linux-gnu\";"), vec!["x86_64"]);
}
