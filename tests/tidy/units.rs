// SPDX-License-Identifier: GPL-2.0-or-later
//! Units reckon themselves: nobody takes the numbers out of two, adds these, and makes a unit of the sum.

use crate::sources::{none_of, written_in};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{BinOp, Expr, Member};

const UNITS: [&str; 5] = ["Nanos", "Insns", "Bytes", "BytesPerSecond", "Count"];
/// Gives the units their arithmetic.
const GIVES: &str = "crates/sample/src/";

/// Of one file: calls such as `Nanos(a.0 + b.0)`, and assignments such as `a.0 += b.0`.
struct Arithmetic<'a> {
    file: &'a str,
    wrong: Vec<String>,
}

impl Arithmetic<'_> {
    fn note(&mut self, place: &impl Spanned, what: &str) {
        let line = place.span().start().line;
        self.wrong.push(format!("{}:{line}: {what}; the unit has operators", self.file));
    }
}

/// `a.0`, of whatever is in front.
fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::Field(field) => matches!(&field.member, Member::Unnamed(index) if index.index == 0),
        Expr::Paren(inside) => is_number(&inside.expr),
        _ => false,
    }
}

/// Two numbers of units, added or subtracted.
fn adds_numbers(expression: &Expr) -> bool {
    match expression {
        Expr::Paren(inside) => adds_numbers(&inside.expr),
        Expr::Binary(binary) => {
            let adds = matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_));
            let both = is_number(&binary.left) && is_number(&binary.right);
            adds && both || adds_numbers(&binary.left) || adds_numbers(&binary.right)
        }
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let adds = ["_add", "_sub", "_diff"].iter().any(|end| name.ends_with(end));
            let both = is_number(&call.receiver) && call.args.iter().any(is_number);
            adds && both || adds_numbers(&call.receiver)
        }
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Arithmetic<'_> {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let Some(last) = path.path.segments.last()
            && UNITS.iter().any(|unit| last.ident == unit)
            && call.args.iter().any(adds_numbers)
        {
            self.note(call, &format!("{} of the numbers of others", last.ident));
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let assigns = matches!(binary.op, BinOp::AddAssign(_) | BinOp::SubAssign(_));
        if assigns && is_number(&binary.left) && is_number(&binary.right) {
            self.note(binary, "the number of one is added to that of another");
        }
        syn::visit::visit_expr_binary(self, binary);
    }

    /// A constant cannot call the operators of a type, which are no `const fn`.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
}

fn wrong_in(file: &str, text: &str) -> Vec<String> {
    let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut arithmetic = Arithmetic { file, wrong: Vec::new() };
    arithmetic.visit_file(&parsed);
    arithmetic.wrong
}

#[test]
fn nobody_adds_the_numbers_of_units() {
    let files = written_in(&[".rs"]).into_iter().filter(|(file, _)| !file.starts_with(GIVES));
    none_of(files.flat_map(|(file, text)| wrong_in(&file, &text)).collect());
}

#[test]
fn a_sum_of_numbers_is_found_however_it_is_written() {
    for wrong in [
        "Nanos(a.0 + b.0)",
        "sample::Insns((a.b.0 - c().0) * 2)",
        "Nanos(a.0.saturating_sub(b.0))",
        "Nanos(a.0.abs_diff(b.0).max(1))",
        "a.total.0 += b.0",
    ] {
        let text = format!("fn f() {{ {wrong}; }}");
        assert_eq!(wrong_in("f.rs", &text).len(), 1, "{wrong}");
    }
    for right in ["Nanos(a.0 / 2)", "a + b", "Some(a.0 + b.0)", "Nanos(1 + b.0)"] {
        let text = format!("fn f() {{ {right}; }}");
        assert_eq!(wrong_in("f.rs", &text), [""; 0], "{right}");
    }
}
