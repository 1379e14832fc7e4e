//! Reading one figure from what a command prints.

use regex::bytes::Regex;

/// A pattern whose first group holds the figure.
#[derive(Clone, Debug)]
pub struct Metric {
    pattern: Regex,
}

/// A pattern that cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// It is no regular expression.
    #[error("{0}")]
    Syntax(String),
    /// There is no group to read the figure from.
    #[error("the pattern has no group")]
    NoGroup,
}

impl From<MetricError> for crate::Failure {
    fn from(error: MetricError) -> Self {
        crate::Failure::usage(
            error.to_string(),
            "--metric",
            r"write a regular expression whose first group is the number, such as 'took ([0-9.]+ ms)'",
        )
    }
}

/// A figure and its unit, brought to one unit a family: times to ns, byte rates to MB/s.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Finite and above 0.
    pub value: f64,
    /// `ns`, `MB/s`, whatever else stood there, or [`Figure::UNITLESS`].
    pub unit: String,
}

impl Figure {
    /// The unit of a figure that has none.
    pub const UNITLESS: &'static str = "metric";
}

impl Metric {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// When it is no regular expression or has no group.
    pub fn new(pattern: &str) -> Result<Self, MetricError> {
        let pattern = Regex::new(pattern).map_err(|error| {
            // The message is several lines that point into the pattern; the last one says what.
            let text = error.to_string();
            MetricError::Syntax(text.lines().last().unwrap_or_default().trim().to_owned())
        })?;
        if pattern.captures_len() < 2 {
            return Err(MetricError::NoGroup);
        }
        Ok(Metric { pattern })
    }

    /// Whether anything in one line matches.
    pub(super) fn is_in(&self, line: &[u8]) -> bool {
        self.pattern.is_match(line)
    }

    /// The texts that match in one line: the first group, and the word that follows it, which may
    /// be its unit.
    pub(super) fn matches<'l>(
        &'l self,
        line: &'l [u8],
    ) -> impl Iterator<Item = (String, String)> + 'l {
        self.pattern.captures_iter(line).filter_map(move |captures| {
            let group = captures.get(1)?;
            let text = String::from_utf8_lossy(group.as_bytes()).trim().to_owned();
            let after = String::from_utf8_lossy(&line[group.end()..]);
            // `12.5ns` and `12.5 ns`, but not `12.5 of 13`: only a known unit is taken from there.
            let word = after.split_whitespace().next().unwrap_or_default();
            let next = word.trim_end_matches([',', ';', ')', ']', '.']).to_owned();
            Some((text, next))
        })
    }
}

/// Reads a number with or without its unit; `next` is what follows it. `None` where it is no number
/// above 0.
pub(super) fn figure(text: &str, next: &str) -> Option<Figure> {
    let text = text.trim();
    let end = number_end(text);
    let number = without_thousands(&text[..end])?;
    let inside = text[end..].trim();
    let (factor, unit) = match inside {
        "" => known(next).unwrap_or((1.0, Figure::UNITLESS.to_owned())),
        inside => known(inside).or_else(|| prefix(inside)).unwrap_or((1.0, inside.to_owned())),
    };
    let value = number * factor;
    (value.is_finite() && value > 0.0).then_some(Figure { value, unit })
}

/// Where the number at the beginning of `text` ends.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    while digit(at) || (matches!(bytes.get(at), Some(b'.' | b',')) && digit(at + 1)) {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if digit(at + 1 + sign) {
            at += 1 + sign;
            while digit(at) {
                at += 1;
            }
        }
    }
    at
}

/// A number that may have commas between groups of three digits; a decimal comma is none.
fn without_thousands(number: &str) -> Option<f64> {
    let Some((whole, rest)) = number.split_once(',') else { return number.parse().ok() };
    let (groups, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = whole.trim_start_matches(['+', '-']).len();
    let grouped = (1..4).contains(&digits) && groups.split(',').all(|group| group.len() == 3);
    // A single comma could be a decimal one: `1,234` is not decided here.
    let decided = groups.contains(',') || !fraction.is_empty();
    (grouped && decided).then(|| number.replace(',', "").parse().ok()).flatten()
}

/// A unit whose size is known, as a factor to the one unit of its family.
fn known(unit: &str) -> Option<(f64, String)> {
    let (first, per) = unit.split_once('/').map_or((unit, None), |(a, b)| (a, Some(b)));
    let time = match first {
        "ns" | "nsec" => Some(1.0),
        "us" | "µs" | "μs" | "usec" => Some(1e3),
        "ms" | "msec" => Some(1e6),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1e9),
        _ => None,
    };
    if let Some(factor) = time {
        return Some((factor, per.map_or("ns".to_owned(), |per| format!("ns/{per}"))));
    }
    let bytes = match first {
        "B" | "bytes" => 1e-6,
        "kB" | "KB" => 1e-3,
        "MB" => 1.0,
        "GB" => 1e3,
        "KiB" => 1024e-6,
        "MiB" => 1.048_576,
        "GiB" => 1_073.741_824,
        _ => return None,
    };
    matches!(per, Some("s" | "sec")).then(|| (bytes, "MB/s".to_owned()))
}

/// A bare decimal prefix, as in `173970.05k`.
fn prefix(unit: &str) -> Option<(f64, String)> {
    let factor = match unit {
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    Some((factor, Figure::UNITLESS.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, next: &str) -> Option<(f64, String)> {
        figure(text, next).map(|figure| (figure.value, figure.unit))
    }

    #[test]
    fn numbers_with_and_without_units() {
        let none = Figure::UNITLESS;
        for (text, next, value, unit) in [
            ("12.5", "", 12.5, none),
            ("12.5", "ns", 12.5, "ns"),
            ("12.5 us", "later", 12_500.0, "ns"),
            ("12.5µs", "", 12_500.0, "ns"),
            ("3 ms/op", "", 3e6, "ns/op"),
            ("0.25", "s", 2.5e8, "ns"),
            ("2.5e-3 s", "", 2.5e6, "ns"),
            ("300", "MB/s", 300.0, "MB/s"),
            ("1.5 GiB/s", "", 1.5 * 1_073.741_824, "MB/s"),
            ("173970.05k", "", 173_970_050.0, none),
            ("7", "of", 7.0, none),
            ("7 Gcycles", "", 7.0, "Gcycles"),
            ("1,234,567", "ns", 1_234_567.0, "ns"),
            ("1,234.5", "", 1234.5, none),
        ] {
            let (found, of) = read(text, next).unwrap_or_else(|| panic!("{text} is a figure"));
            assert!((found - value).abs() <= 1e-12 * value, "{text} {next}: {found}");
            assert_eq!(of, unit, "{text} {next}");
        }
    }

    #[test]
    fn what_is_no_figure_above_0_is_refused() {
        for text in
            ["", "-", "ns", "0", "0.0 ns", "-3 ms", "1,5", "1,234", "12,34.5", "1e999", "nan"]
        {
            assert_eq!(read(text, "ns"), None, "{text}");
        }
    }

    #[test]
    fn a_pattern_must_have_a_group() {
        assert_eq!(Metric::new("took").err(), Some(MetricError::NoGroup));
        assert!(
            matches!(Metric::new("(").err(), Some(MetricError::Syntax(text)) if !text.is_empty())
        );
    }

    #[test]
    fn every_match_of_a_line_is_found_with_what_follows_it() {
        let metric = Metric::new(r"took ([0-9.]+)").expect("is a pattern");
        let found: Vec<_> = metric.matches(b"took 3 ms, took 4us.").collect();
        assert_eq!(found, [("3".into(), "ms".into()), ("4".into(), "us".into())]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_fault(text in "\\PC{0,20}", next in "\\PC{0,8}") {
            if let Some(figure) = figure(&text, &next) {
                proptest::prop_assert!(figure.value.is_finite() && figure.value > 0.0);
                proptest::prop_assert!(!figure.unit.is_empty());
            }
        }

        #[test]
        fn a_plain_number_is_what_the_standard_library_reads(value in 1e-9f64..1e12) {
            let text = format!("{value}");
            proptest::prop_assert_eq!(figure(&text, "").map(|f| f.value), Some(value));
        }
    }
}
