// SPDX-License-Identifier: GPL-2.0-or-later
//! Lengths of functions, in Rust by their syntax, in C and TypeScript by the braces of their first column.

use crate::sources::{none_of, written_in};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Lines of a function at the most, from its name to its closing brace.
const LINES_MAX: usize = 70;
/// Functions of tests that were longer when the rule was made: rows of a table, and one run that is looked at from all
/// sides.
const LONGER: [&str; 4] = [
    "each_mistake_about_a_probe_is_named_with_its_remedy",
    "server",
    "a_report_that_looks_inside_agrees_with_windows_blame_and_explain",
    "function hunt(): Hunt {",
];
/// Half of all functions of the product are at most this long.
const MEDIAN_MAX: usize = 8;

/// A function and how many lines it has.
struct Function {
    place: String,
    lines: usize,
}

struct Functions<'a> {
    file: &'a str,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (from, to) = (signature.span().start().line, block.span().end().line);
        let place = format!("{}:{from}: {}", self.file, signature.ident);
        self.found.push(Function { place, lines: to + 1 - from });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

fn of_rust() -> Vec<Function> {
    let mut all = Vec::new();
    for (file, text) in written_in(&[".rs"]) {
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        let mut functions = Functions { file: &file, found: Vec::new() };
        functions.visit_file(&parsed);
        all.append(&mut functions.found);
    }
    all
}

/// Those whose body is closed in the first column; what is inside another one counts with that.
fn of_braces(ends: &[&str]) -> Vec<Function> {
    let mut all = Vec::new();
    for (file, text) in written_in(ends) {
        let mut begun = None;
        for (line, number) in text.lines().zip(1..) {
            let is_head = |c: char| c.is_ascii_alphabetic() || c == '_';
            if line.starts_with(is_head) && line.contains('(') {
                begun = Some((number, line.to_owned()));
            }
            if line.starts_with('}')
                && let Some((from, head)) = begun.take()
            {
                let place = format!("{file}:{from}: {head}");
                all.push(Function { place, lines: number + 1 - from });
            }
        }
    }
    all
}

fn long(functions: Vec<Function>) -> Vec<String> {
    let is_known = |f: &Function| LONGER.iter().any(|name| f.place.ends_with(name));
    let long = functions.into_iter().filter(|f| f.lines > LINES_MAX && !is_known(f));
    long.map(|f| format!("{}: {} lines, {LINES_MAX} at the most", f.place, f.lines)).collect()
}

#[test]
fn no_function_is_longer_than_a_page() {
    let mut wrong = long(of_rust());
    wrong.extend(long(of_braces(&[".c", ".h"])));
    wrong.extend(long(of_braces(&[".ts", ".mjs"])));
    none_of(wrong);
}

#[test]
fn most_functions_are_short() {
    let is_product = |f: &Function| f.place.starts_with("crates/") && !f.place.contains("tests");
    let mut lines: Vec<usize> =
        of_rust().iter().filter(|f| is_product(f)).map(|f| f.lines).collect();
    lines.sort_unstable();
    let median = lines[lines.len() / 2];
    println!("{} functions, the median has {median} lines", lines.len());
    assert!(median <= MEDIAN_MAX, "the median has {median} lines, {MEDIAN_MAX} at the most");
}
