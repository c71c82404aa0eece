// SPDX-License-Identifier: GPL-2.0-or-later
//! The name of a strategy on the command line, in journals and in printed texts. The strategy itself says what it does
//! ([`crate::Strategy`]). The registry reads names back.

use serde::{Serialize, Serializer};
use std::fmt;

/// The name of a strategy. Names are in the order of their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrategyName {
    /// The place of the strategy in tables, from 0 on.
    row: u8,
    name: &'static str,
}

impl StrategyName {
    /// The name of one strategy. No two strategies have the same row or the same name.
    pub(crate) const fn new(row: u8, name: &'static str) -> StrategyName {
        StrategyName { row, name }
    }

    /// The name as text.
    pub fn as_str(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for StrategyName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

/// The schema lists the existing strategies.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for StrategyName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Strategy".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = crate::registry::all().map(|s| s.name().as_str()).collect();
        schemars::json_schema!({ "type": "string", "enum": names })
    }
}
