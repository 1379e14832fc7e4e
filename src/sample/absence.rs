//! Absence as a type: why something was not measured, and what would change that.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a value is missing, and what would make it available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// Why, as a clause that can follow "because".
    #[serde(rename = "unavailable")]
    pub why: String,
    /// What would mend it, in the imperative; "none on this machine" where nothing would.
    pub remedy: String,
}

impl Absence {
    /// An absence with its reason and remedy.
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Absence { why: why.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.why, self.remedy)
    }
}
