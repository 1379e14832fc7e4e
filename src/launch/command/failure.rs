//! What can go wrong with one launch of a command that could be started.

/// Why a launch has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchFailure {
    /// It ended with a status other than 0.
    #[error("it ended with status {status}{}", last_words(.last))]
    Status {
        /// The status.
        status: i32,
        /// The last line of its standard error.
        last: String,
    },
    /// A signal ended it.
    #[error("it was ended by {signal}{}", last_words(.last))]
    Signal {
        /// The signal's name.
        signal: String,
        /// The last line of its standard error.
        last: String,
    },
    /// It did not end in time, and was ended with everything it started.
    #[error("it did not end within {} s and was ended", .time.as_secs_f64())]
    TimedOut {
        /// The time it had.
        time: std::time::Duration,
    },
    /// It ended, but processes that it started went on; they were ended.
    #[error("it left {processes} running that it had started, which were ended")]
    LeftRunning {
        /// `one process`, `3 processes`.
        processes: String,
    },
    /// No line that it printed matches the metric.
    #[error("no line that it printed matches the metric")]
    NoMatch,
    /// Several lines (or places in one) match.
    #[error("what it printed matches the metric several times (`{first}`, then `{second}`)")]
    SeveralMatches {
        /// The first match.
        first: String,
        /// The second.
        second: String,
    },
    /// What matches is not a figure above 0.
    #[error("the metric matched `{text}`, which is not a number above 0")]
    NotAFigure {
        /// What matched.
        text: String,
    },
    /// The unit is not that of the launches before.
    #[error("the metric came in {found} instead of {expected}")]
    OtherUnit {
        /// The unit of this launch.
        found: String,
        /// That of the first.
        expected: String,
    },
    /// It could not be started, though it could be before.
    #[error("it could not be started: {0}")]
    Start(String),
}

fn last_words(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!(" (`{line}`)") }
}

impl LaunchFailure {
    /// What mends it, in the imperative.
    pub fn remedy(&self) -> &'static str {
        match self {
            LaunchFailure::Status { .. } | LaunchFailure::Signal { .. } => {
                "run the command by itself until it succeeds every time"
            }
            LaunchFailure::TimedOut { .. } => "give it less to do, or more time with --timeout",
            LaunchFailure::LeftRunning { .. } => {
                "give it the option that keeps it in the foreground"
            }
            LaunchFailure::NoMatch => "try the pattern on the command's output",
            LaunchFailure::SeveralMatches { .. } => "make the pattern match one figure only",
            LaunchFailure::NotAFigure { .. } => "let the first group hold a number and its unit",
            LaunchFailure::OtherUnit { .. } => "let the command print one unit",
            LaunchFailure::Start(_) => "check the limits on processes and memory",
        }
    }

    /// The failure without anything that the command printed: for files that may be posted.
    pub fn without_output(&self) -> String {
        match self {
            LaunchFailure::Status { status, .. } => format!("it ended with status {status}"),
            LaunchFailure::Signal { signal, .. } => format!("it was ended by {signal}"),
            LaunchFailure::SeveralMatches { .. } => {
                "what it printed matches the metric several times".to_owned()
            }
            LaunchFailure::NotAFigure { .. } => {
                "what matches the metric is not a number above 0".to_owned()
            }
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_printed_stays_out_of_postable_text() {
        let failure = LaunchFailure::Status { status: 3, last: "no token for ann".into() };
        assert_eq!(failure.to_string(), "it ended with status 3 (`no token for ann`)");
        assert_eq!(failure.without_output(), "it ended with status 3");
        let silent = LaunchFailure::Status { status: 3, last: String::new() };
        assert_eq!(silent.to_string(), silent.without_output());
    }
}
