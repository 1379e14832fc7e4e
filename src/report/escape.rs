//! Foreign text made harmless, one function a target.
//!
//! Command lines, machine names and CSV cells come from anywhere. Whatever they hold must appear
//! as text: never as markup, never as a terminal's escape sequence, never reordering the line that
//! it stands in. All of it passes [`plain`] first; the other functions add what their target needs.

use std::fmt::Write as _;

/// Characters of one foreign text that are shown; what follows becomes `…`.
pub const LONGEST: usize = 400;

/// Text for a terminal: control characters and those that reorder or hide text are spelled out as
/// `\u{…}`, and a text longer than [`LONGEST`] characters is cut with `…`.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4 * LONGEST));
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() || is_invisible(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters without a glyph of their own that change how their neighbours are shown: zero-width
/// and bidirectional formatting, line and paragraph separators, tags, and the byte-order mark.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text for the content or a quoted attribute of HTML and SVG.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not characters of XML, although they are characters of Unicode.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text for a paragraph or a table cell of Markdown.
///
/// Letters, digits and plain punctuation stay; a text that holds anything else is set as code, with
/// entities where a code span could be left, so that neither emphasis, links, images, mentions
/// (`@name`), issue references (`#1`), table cells nor HTML come of it.
pub fn markdown(text: &str) -> String {
    let text = plain(text);
    if is_plain_prose(&text) { text } else { code(&text) }
}

/// Text for Markdown that is shown as code whatever it holds: a command line, a rule.
pub fn markdown_code(text: &str) -> String {
    if text.is_empty() { String::new() } else { code(&plain(text)) }
}

fn code(text: &str) -> String {
    // Within backticks everything is literal, but a backtick ends the span and a bar the cell.
    if !text.contains(['`', '|', '<', '>', '\\']) {
        return format!("`{text}`");
    }
    let mut out = String::from("<code>");
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == ' ' {
            out.push(c);
        } else {
            let _ = write!(out, "&#{};", u32::from(c));
        }
    }
    out.push_str("</code>");
    out
}

/// Whether Markdown would show the text as it is: nothing in it can mean markup, begin a list, or
/// be taken for an address.
fn is_plain_prose(text: &str) -> bool {
    // `1. ` and `1) ` begin a list; `1.5` does not.
    let after_digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let marker = after_digits.strip_prefix(['.', ')']);
    let numbered = after_digits.len() < text.len()
        && marker.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let within_a_word = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + 1..].chars().next();
        before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
    };
    text.char_indices().all(|(at, c)| match c {
        c if c.is_alphanumeric() => true,
        ' ' | ',' | '.' | '(' | ')' | '+' | '-' | '%' | ';' | '\'' | '?' | '…' => true,
        // One slash is a fraction or a path, two may be an address.
        '/' => !text[at..].starts_with("//"),
        // `:word:` would be a picture.
        ':' => text[at + 1..].starts_with(' '),
        // Between letters it is no emphasis.
        '_' => within_a_word(at),
        _ => false,
    }) && !text.starts_with([' ', '+', '-', ':', '_'])
        && !text.ends_with(' ')
        && !numbered
        && !text.to_ascii_lowercase().contains("www.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let text = "AMD EPYC 9R45, glibc 2.43 (zmm copy), 4 cores";
        assert_eq!(
            (plain(text), xml(text), markdown(text)),
            (text.into(), text.into(), text.into())
        );
    }

    #[test]
    fn markup_becomes_text() {
        assert_eq!(xml("<b a='x'>&\""), "&lt;b a=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(markdown("@you"), "`@you`");
        assert_eq!(markdown("buf & 31 != 0"), "`buf & 31 != 0`");
        assert_eq!(markdown("_a_b_"), "`_a_b_`");
        assert_eq!(markdown("a_b: 1/2"), "a_b: 1/2");
        assert_eq!(markdown("https://example.com"), "`https://example.com`");
        assert_eq!(markdown("a|b"), "<code>a&#124;b</code>");
        assert_eq!(markdown("see www.example.com"), "`see www.example.com`");
        assert_eq!(markdown("1. first"), "`1. first`");
        assert_eq!(markdown("`|<"), "<code>&#96;&#124;&#60;</code>");
    }

    #[test]
    fn escape_sequences_and_reordering_are_spelled_out() {
        assert_eq!(plain("\u{1b}[31mred\n\u{202e}"), "\\u{1b}[31mred\\u{a}\\u{202e}");
        assert_eq!(plain("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn endless_text_is_cut() {
        assert_eq!(plain(&"x".repeat(100_000)).chars().count(), LONGEST + 1);
    }

    proptest! {
        #[test]
        fn nothing_foreign_is_ever_markup_or_a_command(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}|.{0,40}") {
            let shown = plain(&text);
            prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)));
            let inside = xml(&text);
            prop_assert!(!inside.contains(['<', '>', '"', '\'']));
            // Every ampersand begins one of our entities.
            for (at, _) in inside.match_indices('&') {
                let rest = &inside[at..];
                prop_assert!(["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].iter().any(|e| rest.starts_with(e)));
            }
            let cell = markdown(&text);
            if let Some(code) = cell.strip_prefix('`').and_then(|c| c.strip_suffix('`')) {
                prop_assert!(!code.contains(['`', '|', '<', '>', '\\']));
            } else {
                let body = cell.strip_prefix("<code>").and_then(|c| c.strip_suffix("</code>"));
                let body = body.unwrap_or(&cell);
                prop_assert!(!body.contains(['<', '>', '|', '`', '*', '[', '!', '@', '\\', '"']));
            }
            prop_assert!(!cell.chars().any(char::is_control));
        }
    }
}
