//! The `params` cell: `key=value` pairs, sorted by key and joined with `;`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whatever distinguishes a sample beyond the named columns (`grid`, `load`, `gap`, `form`, …).
///
/// Keys and values hold neither `=` nor `;`: those characters are replaced by `_` on insertion, so
/// that what is written can always be read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// No parameters: an empty cell.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same parameters with `key` set to `value`.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.set(key, value);
        self
    }

    /// Sets `key` to `value`, replacing an earlier value.
    pub fn set(&mut self, key: &str, value: impl fmt::Display) {
        let clean = |text: &str| text.replace(['=', ';'], "_");
        self.0.insert(clean(key), clean(&value.to_string()));
    }

    /// The value of `key`, if it is set.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All pairs in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Whether the cell is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(";")?;
            }
            write!(f, "{key}={value}")?;
        }
        Ok(())
    }
}

/// A `params` cell that is not `key=value;…`; holds the offending part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not key=value")]
pub struct BadParams(pub String);

impl FromStr for Params {
    type Err = BadParams;

    fn from_str(text: &str) -> Result<Self, BadParams> {
        text.split(';')
            .filter(|part| !part.is_empty())
            .map(|part| match part.split_once('=') {
                Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
                _ => Err(BadParams(part.to_owned())),
            })
            .collect::<Result<_, _>>()
            .map(Params)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_and_read_back() {
        let params = Params::new().with("width", 16).with("grid", "page");
        assert_eq!(params.to_string(), "grid=page;width=16");
        assert_eq!("grid=page;width=16".parse(), Ok(params));
        assert_eq!("".parse(), Ok(Params::new()));
    }

    #[test]
    fn separators_cannot_be_smuggled_in() {
        let params = Params::new().with("a;b", "c=d");
        assert_eq!(params.to_string().parse(), Ok(params));
    }

    #[test]
    fn a_part_without_a_key_is_an_error() {
        assert_eq!("a=1;=2".parse::<Params>(), Err(BadParams("=2".into())));
        assert_eq!("novalue".parse::<Params>(), Err(BadParams("novalue".into())));
    }
}
