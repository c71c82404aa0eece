// SPDX-License-Identifier: GPL-2.0-or-later
//! The TOML document as a tree. Every key and value knows its place. The command line can replace values, and a problem
//! with such a value is shown at the replacement.

use super::diagnostic::{Place, Problem};
use toml_edit::{Document, Item, Key, Value as TomlValue};

/// A value of the document.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Table(Table),
    List(Vec<Node>),
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date,
}

impl Value {
    /// What it is, for "expected …, found …".
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Table(_) => "a table",
            Value::List(_) => "a list",
            Value::Text(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number with a fraction",
            Value::Boolean(_) => "true or false",
            Value::Date => "a date",
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub at: Place,
}

/// A key, where it stands, and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_at: Place,
    pub node: Node,
}

/// Entries in the order of the document.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub Vec<Entry>);

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|e| e.key == key)
    }
}

/// Where a text stands in the source that it is shown from.
#[derive(Clone, Copy)]
struct Frame {
    source: usize,
    /// Bytes that the source has in front of the text that was parsed, less those of the text.
    shift: usize,
}

impl Frame {
    fn place(self, span: Option<std::ops::Range<usize>>) -> Place {
        Place::new(self.source, span.map(|s| s.start + self.shift..s.end + self.shift))
    }

    fn entry(self, key: &Key, item: &Item) -> Entry {
        let key_at = self.place(key.span());
        let mut node = self.node(item);
        // A table made by dotted keys has no place of its own.
        if node.at.span.is_none() {
            node.at = key_at.clone();
        }
        Entry { key: key.get().to_owned(), key_at, node }
    }

    fn table(self, table: &dyn toml_edit::TableLike) -> Table {
        let entry = |(name, item): (&str, &Item)| table.key(name).map(|key| self.entry(key, item));
        Table(table.iter().filter_map(entry).collect())
    }

    fn node(self, item: &Item) -> Node {
        let value = match item {
            Item::None => Value::Table(Table::default()),
            Item::Table(table) => Value::Table(self.table(table)),
            Item::ArrayOfTables(tables) => Value::List(
                tables
                    .iter()
                    .map(|t| Node { value: Value::Table(self.table(t)), at: self.place(t.span()) })
                    .collect(),
            ),
            Item::Value(value) => self.value(value),
        };
        Node { value, at: self.place(item.span()) }
    }

    fn value(self, value: &TomlValue) -> Value {
        match value {
            TomlValue::String(text) => Value::Text(text.value().clone()),
            TomlValue::Integer(n) => Value::Integer(*n.value()),
            TomlValue::Float(n) => Value::Float(*n.value()),
            TomlValue::Boolean(b) => Value::Boolean(*b.value()),
            TomlValue::Datetime(_) => Value::Date,
            TomlValue::Array(list) => Value::List(
                list.iter()
                    .map(|v| Node { value: self.value(v), at: self.place(v.span()) })
                    .collect(),
            ),
            TomlValue::InlineTable(table) => Value::Table(self.table(table)),
        }
    }
}

/// Parses the file, source 0. A text that is not TOML has one problem, the first: what follows it
/// cannot be trusted.
pub(super) fn parse(text: &str) -> Result<Table, Problem> {
    let frame = Frame { source: 0, shift: 0 };
    let document = Document::parse(text).map_err(|e| not_toml(frame, text, &e))?;
    Ok(frame.table(document.as_table()))
}

fn not_toml(frame: Frame, text: &str, error: &toml_edit::TomlError) -> Problem {
    let wrong = error.span().and_then(|span| text.get(span.start..));
    // A limit on a deadline is written as a call, which no key of TOML is.
    let is_call = wrong.is_some_and(|wrong| wrong.starts_with('('));
    Problem {
        at: frame.place(error.span()),
        message: error.message().lines().collect::<Vec<_>>().join("; "),
        help: is_call
            .then(|| "a name with parentheses needs quotes, as \"miss(100us)\"".to_owned()),
    }
}

/// Puts `--set key=value`, shown from `source`, into the document. A value that is not TOML and does
/// not begin like a TOML text, list or table is taken as the text it is, so that `1ms` needs no quotes.
pub(super) fn apply(
    root: &mut Table,
    source: usize,
    key: &str,
    value: &str,
) -> Result<(), Problem> {
    let problem = |span, message: &str, help: &str| Problem {
        at: Place::new(source, Some(span)),
        message: message.into(),
        help: Some(help.into()),
    };
    let keys = Key::parse(key).map_err(|_| {
        problem(
            0..key.len(),
            "not a key",
            "write it as in the file, with dots: trigger.count, limits.task.\"p99.9\"",
        )
    })?;
    let whole = key.len() + 1..key.len() + 1 + value.len();
    if value.contains(['\n', '\r']) {
        return Err(problem(whole, "a value is one line", "give one --set for each key"));
    }
    // `v=` stands where the source shows `key=`; a key has at least one byte.
    let frame = Frame { source, shift: key.len() - 1 };
    let text = format!("v={value}");
    let node = match Document::parse(text.as_str()) {
        Ok(document) => frame.node(&document["v"]),
        Err(e) if value.starts_with(['"', '\'', '[', '{']) => {
            return Err(not_toml(frame, &text, &e));
        }
        Err(_) => Node { value: Value::Text(value.into()), at: Place::new(source, Some(whole)) },
    };
    let key_at = Place::new(source, Some(0..key.len()));
    let blocked = |name: &str| {
        let message = format!("{name:?} holds no keys: it is a value, not a table");
        problem(0..key.len(), &message, "leave out what follows it")
    };
    put(root, &keys, &key_at, node).map_err(blocked)
}

/// Sets the value below `keys`, making the tables that are missing; the name of a key that is not a
/// table is the error.
fn put<'k>(table: &mut Table, keys: &'k [Key], key_at: &Place, node: Node) -> Result<(), &'k str> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    let index = table.0.iter().position(|e| e.key == first.get()).unwrap_or_else(|| {
        let empty = Node { value: Value::Table(Table::default()), at: key_at.clone() };
        table.0.push(Entry { key: first.get().into(), key_at: key_at.clone(), node: empty });
        table.0.len() - 1
    });
    let entry = &mut table.0[index];
    if rest.is_empty() {
        entry.key_at = key_at.clone();
        entry.node = node;
        return Ok(());
    }
    match &mut entry.node.value {
        Value::Table(inner) => put(inner, rest, key_at, node),
        _ => Err(first.get()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf<'a>(root: &'a Table, keys: &[&str]) -> &'a Node {
        let (first, rest) = keys.split_first().unwrap();
        let node = &root.get(first).unwrap().node;
        match (&node.value, rest) {
            (_, []) => node,
            (Value::Table(inner), rest) => leaf(inner, rest),
            _ => panic!("{keys:?} is a value"),
        }
    }

    #[test]
    fn keys_and_values_know_their_place() {
        let text = "a.b = 1\n[c]\nd = [\"x\", true]\n";
        let root = parse(text).unwrap();
        let show = |at: &Place| at.span.map(|(a, b)| &text[a..b]);
        assert_eq!(show(&leaf(&root, &["a", "b"]).at), Some("1"));
        assert_eq!(show(&leaf(&root, &["a"]).at), Some("a"));
        assert_eq!(show(&root.get("c").unwrap().key_at), Some("c"));
        let Value::List(list) = &leaf(&root, &["c", "d"]).value else { panic!() };
        assert_eq!(show(&list[1].at), Some("true"));
    }

    #[test]
    fn an_override_replaces_a_value_and_points_at_what_was_typed() {
        let mut root = parse("[trigger]\ncount = 5\n").unwrap();
        apply(&mut root, 3, "trigger.count", "[1, 2]").unwrap();
        let node = leaf(&root, &["trigger", "count"]);
        assert_eq!(node.at, Place::new(3, Some(14..20)));
        let Value::List(list) = &node.value else { panic!() };
        assert_eq!(list[1].at, Place::new(3, Some(18..19)));
        apply(&mut root, 4, "a.\"p99.9\"", "1ms").unwrap();
        let node = leaf(&root, &["a", "p99.9"]);
        assert!(matches!(&node.value, Value::Text(t) if t == "1ms"));
        assert_eq!(node.at, Place::new(4, Some(10..13)));
    }

    #[test]
    fn an_override_cannot_smuggle_in_a_second_key() {
        let mut root = Table::default();
        assert!(apply(&mut root, 1, "seed", "1\ntitle = 'x'").is_err());
        assert!(apply(&mut root, 1, "seed\ntitle", "1").is_err());
        assert!(apply(&mut root, 1, "", "1").is_err());
        assert!(apply(&mut root, 1, "seed", "[1").is_err());
        assert!(root.0.is_empty());
        apply(&mut root, 1, "seed", "1").unwrap();
        let blocked = apply(&mut root, 1, "seed.x", "1").unwrap_err();
        assert!(blocked.message.contains("\"seed\" holds no keys"));
    }

    #[test]
    fn nesting_without_end_is_refused_and_does_not_exhaust_the_stack() {
        assert!(parse(&format!("a = {}", "[".repeat(100_000))).is_err());
        assert!(parse(&format!("a{} = 1", ".a".repeat(100_000))).is_err());
        assert!(parse(&format!("[a{}]", ".a".repeat(100_000))).is_err());
        assert!(
            apply(&mut Table::default(), 1, &format!("a{}", ".a".repeat(100_000)), "1").is_err()
        );
    }
}
