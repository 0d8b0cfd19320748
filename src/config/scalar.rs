//! The building blocks of the raw mirror: values with their positions, and values of more than one form.
//!
//! Each has two forms: YAML, which people write, and the compact one in which the build script keeps
//! the presets.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_yaml::{Location, Spanned};

use super::keywords::RawProtectWord;

/// A position in a text, in characters from 1; 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) length: u64,
}

impl Position {
    pub(crate) const START: Self = Self {
        line: 1,
        column: 1,
        length: 0,
    };
}

impl From<Location> for Position {
    fn from(at: Location) -> Self {
        Self {
            line: at.line(),
            column: at.column(),
            length: at.span().len(),
        }
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Deserialize::deserialize(deserializer).map(|(value, at)| Self { value, at });
        }
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            value: spanned.value,
            at: spanned.referenced.into(),
        })
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.value, self.at).serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A mapping from names a person chose, in file order.
#[derive(Debug, Clone)]
pub(crate) struct Entries<V>(pub(crate) Vec<(At<String>, V)>);

impl<V> Default for Entries<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<V>(std::marker::PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<V> {
            type Value = Entries<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping from names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<V>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Entries(pairs))
            }
            fn visit_unit<E: Error>(self) -> Result<Entries<V>, E> {
                Ok(Entries(Vec::new()))
            }
        }
        deserializer.deserialize_map(EntriesVisitor(std::marker::PhantomData))
    }
}

impl<V: Serialize> Serialize for Entries<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<V: JsonSchema> JsonSchema for Entries<V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", V::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<V>()})
    }
}

/// `approval:` where it is a keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RawDemand {
    None,
    Required,
    OncePerSession,
    Deny,
    /// Some other keyword: refused where its position is known.
    Other(String),
}

pub(crate) const DEMANDS: &[&str] = &["required", "none", "once_per_session", "deny"];

impl<'de> Deserialize<'de> for RawDemand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keyword;
        impl Visitor<'_> for Keyword {
            type Value = RawDemand;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one of required, none, once_per_session, deny, true, false")
            }
            fn visit_bool<E: Error>(self, required: bool) -> Result<RawDemand, E> {
                Ok(if required { RawDemand::Required } else { RawDemand::None })
            }
            fn visit_str<E: Error>(self, keyword: &str) -> Result<RawDemand, E> {
                Ok(match keyword {
                    "required" => RawDemand::Required,
                    "none" => RawDemand::None,
                    "once_per_session" => RawDemand::OncePerSession,
                    "deny" => RawDemand::Deny,
                    other => RawDemand::Other(other.to_owned()),
                })
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Keyword)
        } else {
            deserializer.deserialize_str(Keyword)
        }
    }
}

impl Serialize for RawDemand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::None => "none",
            Self::Required => "required",
            Self::OncePerSession => "once_per_session",
            Self::Deny => "deny",
            Self::Other(keyword) => keyword,
        })
    }
}

impl JsonSchema for RawDemand {
    fn schema_name() -> Cow<'static, str> {
        "Approval".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Whether a person is asked. `true` means required, `false` means none.",
            "enum": ["required", "none", "once_per_session", "deny", true, false]
        })
    }
}

/// `network:` of commands, of a rule, of a custom tool.
#[derive(Debug, Clone)]
pub(crate) enum RawNetwork {
    Off,
    Full,
    Hosts(RawHosts),
    /// Some keyword: refused where its position is known.
    Other(String),
}

/// The hosts that may be reached, and whether somebody is asked about others.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHosts {
    /// `HOST:PORTS` entries: a name, `*.NAME` for every name below it, an address, a network such as `10.0.0.0/8`; without
    /// ports, 80 and 443. An empty list gives nothing.
    pub(crate) allow: Option<Vec<At<String>>>,
    /// Whether somebody is asked about a host that is not listed, for commands that were approved. Default false.
    pub(crate) ask: Option<At<bool>>,
}

impl<'de> Deserialize<'de> for RawNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NetworkVisitor;
        impl<'de> Visitor<'de> for NetworkVisitor {
            type Value = RawNetwork;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or `{allow: [HOST:PORTS]}`")
            }
            fn visit_bool<E: Error>(self, full: bool) -> Result<RawNetwork, E> {
                Ok(if full { RawNetwork::Full } else { RawNetwork::Off })
            }
            fn visit_str<E: Error>(self, keyword: &str) -> Result<RawNetwork, E> {
                Ok(RawNetwork::Other(keyword.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawNetwork, A::Error> {
                RawHosts::deserialize(MapAccessDeserializer::new(map)).map(RawNetwork::Hosts)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(NetworkVisitor)
        } else {
            deserializer.deserialize_bool(NetworkVisitor)
        }
    }
}

impl Serialize for RawNetwork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Full => serializer.serialize_bool(true),
            Self::Hosts(_) | Self::Other(_) => Err(S::Error::custom("a preset says `true` or `false` to the network")),
        }
    }
}

impl JsonSchema for RawNetwork {
    fn schema_name() -> Cow<'static, str> {
        "Network".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "boolean"}, generator.subschema_for::<RawHosts>()]})
    }
}

/// `protect:`.
#[derive(Debug, Clone)]
pub(crate) enum RawProtect {
    Keyword(RawProtectWord),
    /// The names of the list but for these, and these besides.
    Names(RawProtectNames),
    /// Some other keyword: refused where its position is known.
    Other(String),
}

/// Which names are protected, beside `default` or `prevent`.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProtectNames {
    /// Names that are protected besides those of the list: `deploy.sh`, `ops/*.sh`, `.mine/**`.
    pub(crate) add: Option<Vec<At<String>>>,
    /// Names of the list that are not protected.
    pub(crate) except: Option<Vec<At<String>>>,
}

impl<'de> Deserialize<'de> for RawProtect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ProtectVisitor;
        impl<'de> Visitor<'de> for ProtectVisitor {
            type Value = RawProtect;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`default`, `prevent`, `none` or `{add: [NAME], except: [NAME]}`")
            }
            fn visit_str<E: Error>(self, keyword: &str) -> Result<RawProtect, E> {
                Ok(match keyword {
                    "default" => RawProtect::Keyword(RawProtectWord::Default),
                    "prevent" => RawProtect::Keyword(RawProtectWord::Prevent),
                    "none" => RawProtect::Keyword(RawProtectWord::None),
                    other => RawProtect::Other(other.to_owned()),
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawProtect, A::Error> {
                RawProtectNames::deserialize(MapAccessDeserializer::new(map)).map(RawProtect::Names)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(ProtectVisitor)
        } else {
            deserializer.deserialize_str(ProtectVisitor)
        }
    }
}

impl Serialize for RawProtect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keyword(keyword) => serializer.serialize_str(match keyword {
                RawProtectWord::Default => "default",
                RawProtectWord::Prevent => "prevent",
                RawProtectWord::None => "none",
            }),
            Self::Names(_) | Self::Other(_) => Err(S::Error::custom("a preset has a word for `protect`")),
        }
    }
}

impl JsonSchema for RawProtect {
    fn schema_name() -> Cow<'static, str> {
        "Protect".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (keyword, names) = (
            generator.subschema_for::<RawProtectWord>(),
            generator.subschema_for::<RawProtectNames>(),
        );
        json_schema!({"anyOf": [keyword, names]})
    }
}

/// A byte count with its unit, as it was written: `1MiB`, or a plain number of bytes.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct RawSize(pub(crate) String);

/// A duration with its unit, as it was written: `120s`.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct RawTime(pub(crate) String);

impl<'de> Deserialize<'de> for RawSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for RawSize {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Bytes: a whole number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB; a plain number is bytes.",
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB)?$"}
            ]
        })
    }
}

impl JsonSchema for RawTime {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number with its unit: ms, s, m or h.",
            "type": "string",
            "pattern": "^[0-9]+ ?(ms|s|m|h)$"
        })
    }
}
