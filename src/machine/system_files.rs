//! One-line files of `/proc` and `/sys`, each of which may be missing.

use std::path::Path;

/// The file's text without surrounding blanks; `None` where it cannot be read or is empty.
pub fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The file's text as a number.
pub fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    line(path)?.parse().ok()
}

/// The value of the first `key : value` line of a text such as `/proc/cpuinfo`.
pub fn value_of(text: &str, key: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

/// The choice in brackets of a text such as `always [madvise] never`.
pub fn bracketed(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(choice, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_nothing_else() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC: x\nflags :\n";
        assert_eq!(value_of(text, "model name").as_deref(), Some("AMD EPYC: x"));
        assert_eq!(value_of(text, "flags"), None);
        assert_eq!(value_of(text, "absent"), None);
        assert_eq!(line("/nonexistent"), None);
        assert_eq!(bracketed("always [madvise] never"), Some("madvise"));
        assert_eq!(bracketed("always"), None);
    }
}
