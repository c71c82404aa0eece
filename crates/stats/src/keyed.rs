// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON of what holds numbers of a quantity. A key that holds such a number ends with the quantity's suffix:
//! `min_ns` in a summary of times, `min_insns` in one of instructions.

use sample::Quantity;
use serde::de::value::UnitDeserializer;
use serde::de::{Deserialize, Error, MapAccess};

/// `base` with the suffix of the quantity.
pub(crate) fn key<Q: Quantity>(base: &str) -> String {
    format!("{base}_{}", Q::SUFFIX)
}

/// Serde for a struct over a quantity `Q`: its fields in their order, each with its key. A field with `unless` is left
/// out where that function says so. As derived with `deny_unknown_fields`, except that keys depend on `Q`.
macro_rules! keyed {
    ($name:ident { $($field:ident: $key:expr $(, unless $absent:path)?;)* }) => {
        impl<Q: Quantity + Serialize> Serialize for $name<Q> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(if crate::keyed::keyed!(@present self.$field $(, $absent)?) {
                    map.serialize_entry(&$key, &self.$field)?;
                })*
                map.end()
            }
        }

        impl<'de, Q: Quantity + Deserialize<'de>> Deserialize<'de> for $name<Q> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<Q>(core::marker::PhantomData<Q>);

                impl<'de, Q: Quantity + Deserialize<'de>> serde::de::Visitor<'de> for Fields<Q> {
                    type Value = $name<Q>;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str(concat!("struct ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        $(let mut $field = None;)*
                        while let Some(key) = map.next_key::<String>()? {
                            $(if *key == *$key {
                                crate::keyed::read(&mut map, &key, &mut $field)?;
                                continue;
                            })*
                            return Err(crate::keyed::unknown(&key, &[$(&*$key),*]));
                        }
                        Ok($name { $($field: crate::keyed::known($field, &$key)?,)* })
                    }
                }

                deserializer.deserialize_map(Fields(core::marker::PhantomData))
            }
        }
    };
    (@present $value:expr) => { true };
    (@present $value:expr, $absent:path) => { !$absent(&$value) };
}
pub(crate) use keyed;

/// Reads the value of a key that was not there before.
pub(crate) fn read<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    key: &str,
    field: &mut Option<T>,
) -> Result<(), A::Error> {
    match field.replace(map.next_value()?) {
        Some(_) => Err(A::Error::custom(format_args!("duplicate field `{key}`"))),
        None => Ok(()),
    }
}

/// No field has this key.
pub(crate) fn unknown<E: Error>(key: &str, known: &[&str]) -> E {
    let known = known.join("`, `");
    E::custom(format_args!("unknown field `{key}`, expected one of `{known}`"))
}

/// What was read of a field. An `Option` may be absent.
pub(crate) fn known<'de, E: Error, T: Deserialize<'de>>(
    field: Option<T>,
    key: &str,
) -> Result<T, E> {
    let absent = || T::deserialize(UnitDeserializer::<E>::new());
    let missing = |_| E::custom(format_args!("missing field `{key}`"));
    field.map_or_else(|| absent().map_err(missing), Ok)
}

/// The schema of another quantity than time: its keys with that one's suffix.
#[cfg(feature = "schema")]
pub(crate) fn units<Q: Quantity>(schema: &mut schemars::Schema) {
    fn rename(value: &mut serde_json::Value, suffix: &str) {
        let renamed = |text: &str| match text.strip_suffix("_ns") {
            // Times that say when something was stay times.
            Some(base) if !["at", "width"].contains(&base) => Some(format!("{base}_{suffix}")),
            _ => None,
        };
        match value {
            serde_json::Value::Object(map) => {
                for (key, mut value) in std::mem::take(map) {
                    rename(&mut value, suffix);
                    map.insert(renamed(&key).unwrap_or(key), value);
                }
            }
            serde_json::Value::Array(all) => all.iter_mut().for_each(|one| rename(one, suffix)),
            serde_json::Value::String(text) => {
                *text = renamed(text).unwrap_or_else(|| text.clone())
            }
            _ => {}
        }
    }
    if Q::KIND != sample::QuantityKind::Nanos {
        let mut value = std::mem::take(schema).to_value();
        rename(&mut value, Q::SUFFIX);
        *schema = value.try_into().expect("it was a schema");
    }
}
