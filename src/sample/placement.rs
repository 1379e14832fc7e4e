//! The words of the schema that have a fixed vocabulary: placement, grid, role, status.

/// A word that is not in the vocabulary of its column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not one of {expected}")]
pub struct UnknownName {
    /// The word as it was read.
    pub found: String,
    /// The words that are allowed, joined with commas.
    pub expected: String,
}

/// Gives an enum of unit variants its one spelling, for CSV, JSON and display alike.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The one spelling used in CSV, JSON and text.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::sample::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::sample::UnknownName> {
                $name::ALL.iter().copied().find(|v| v.as_str() == text).ok_or_else(|| $crate::sample::UnknownName {
                    found: text.to_owned(),
                    expected: [$($text),+].join(", "),
                })
            }
        }
    };
}

pub(crate) use vocabulary;

vocabulary! {
    /// By which means a sample's placement was chosen; `placement_value` is in the unit named here.
    Placement {
        /// The trampoline's shift, in bytes below its anchor.
        Shift => "shift",
        /// The length of the environment padding, in bytes.
        Pad => "pad",
        /// The input's offset from a page-aligned slab, in bytes.
        Offset => "offset",
        /// Whatever address-space randomisation gave; the value is the stack's address modulo 8192.
        Aslr => "aslr",
        /// The length of an added argument, in bytes.
        Argv => "argv",
        /// The length of the executable's path, in bytes.
        Path => "path",
    }
}

vocabulary! {
    /// Which grid of shifts a verdict is about (`params` carries `grid=…`).
    Grid {
        /// Sixteen shifts of 16 bytes: four lines of 64 bytes.
        Line => "line",
        /// Every 16 bytes of 8192: two periods of 4096.
        Page => "page",
    }
}

vocabulary! {
    /// What a workload is for.
    Role {
        /// The code that is asked about: only subjects decide the gate.
        Subject => "subject",
        /// Code that shows the effect on many cores by design: reported, never gating.
        Exhibit => "exhibit",
        /// Code that must be flat (or must stall), to prove that the measurement works.
        Control => "control",
    }
}

impl Role {
    /// The role of a workload by the names in the columns `workload` and `arm`; a workload that is
    /// not built in is a subject.
    pub fn of(workload: &str, arm: &str) -> Role {
        match (workload, arm) {
            ("registers", _) | (_, "store-only" | "realigned") => Role::Control,
            ("copychain" | "copyring" | "roundtrip", _) => Role::Exhibit,
            _ => Role::Subject,
        }
    }
}

vocabulary! {
    /// What became of the timed block or the launch.
    Status {
        /// Measured.
        Ok => "ok",
        /// The launch or block ended without a figure; the figure's cell is empty.
        Failed => "failed",
        /// The launch did not end within its time and was stopped.
        TimedOut => "timed-out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_everywhere() {
        for &placement in Placement::ALL {
            assert_eq!(placement.as_str().parse(), Ok(placement));
            assert_eq!(
                serde_json::to_string(&placement).ok(),
                Some(format!("\"{placement}\"")),
                "JSON and CSV must agree"
            );
        }
    }

    #[test]
    fn only_the_code_in_question_gates() {
        for name in ["blake3", "blake3-hasher", "sha256", "memcpy", "command"] {
            assert_eq!(Role::of(name, "default"), Role::Subject);
        }
        assert_eq!(Role::of("copyring", "default"), Role::Exhibit);
        assert_eq!(Role::of("registers", "default"), Role::Control);
    }

    #[test]
    fn an_unknown_word_lists_the_known_ones() {
        let error = "stack".parse::<Grid>();
        assert_eq!(
            error.map_err(|e| e.to_string()),
            Err("`stack` is not one of line, page".to_owned())
        );
    }
}
