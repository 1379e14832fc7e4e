//! What a command prints, drained in bounded memory: matched line by line, and forgotten.

use super::failure::LaunchFailure;
use super::metric::{Figure, Metric, figure};

/// A longer line is cut: what follows is not searched.
const LONGEST_LINE: usize = 64 << 10;
/// How many characters of a line a message shows.
const SHOWN: usize = 120;
/// How much of what is passed over is looked at for its last line.
const ENDING: usize = 4 << 10;

/// One stream of a command.
///
/// A carriage return goes back to the beginning of the line, and what follows replaces what stood
/// there, as on a terminal: of a line that is written again and again to show progress only the
/// last state counts.
#[derive(Debug, Default)]
pub(super) struct Stream {
    line: Vec<u8>,
    /// Where in the line the next byte goes.
    at: usize,
    /// The last line that was not empty.
    last: Vec<u8>,
}

/// What a message shows of a text that a command printed.
fn shortened(text: &str) -> String {
    let text = text.trim();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

impl Stream {
    /// Takes what was read.
    pub(super) fn take(&mut self, bytes: &[u8], matches: &mut Matches<'_>) {
        let mut rest = if matches.wanted() { bytes } else { self.end_of(bytes) };
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            self.append(&rest[..at]);
            if rest[at] == b'\n' {
                self.end_line(matches);
            } else {
                self.at = 0;
            }
            rest = &rest[at + 1..];
        }
        self.append(rest);
    }

    /// Where nothing is searched for only the last line counts: all but the end is passed over, so
    /// that a command which prints much is not held up.
    fn end_of<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let passed = bytes.len().saturating_sub(ENDING);
        match memchr::memrchr(b'\n', &bytes[..passed]) {
            Some(at) => {
                self.line.clear();
                self.at = 0;
                &bytes[at + 1..]
            }
            None => bytes,
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(LONGEST_LINE - self.at)];
        let (over, beyond) = bytes.split_at(bytes.len().min(self.line.len() - self.at));
        self.line[self.at..self.at + over.len()].copy_from_slice(over);
        self.line.extend_from_slice(beyond);
        self.at += bytes.len();
    }

    fn end_line(&mut self, matches: &mut Matches<'_>) {
        self.at = 0;
        matches.search(&self.line);
        if !self.line.trim_ascii().is_empty() {
            std::mem::swap(&mut self.line, &mut self.last);
        }
        self.line.clear();
    }

    /// The stream has ended; returns its last line that is not empty.
    pub(super) fn finish(&mut self, matches: &mut Matches<'_>) -> String {
        if !self.line.is_empty() {
            self.end_line(matches);
        }
        shortened(&String::from_utf8_lossy(&std::mem::take(&mut self.last)))
    }
}

/// What matched in both streams: of many matches the first two, which are one too many.
#[derive(Debug)]
pub(super) struct Matches<'m> {
    metric: Option<&'m Metric>,
    found: Vec<(String, String)>,
}

impl<'m> Matches<'m> {
    pub(super) fn of(metric: Option<&'m Metric>) -> Self {
        Matches { metric, found: Vec::new() }
    }

    /// Whether anything is still searched for.
    fn wanted(&self) -> bool {
        self.metric.is_some() && self.found.len() < 2
    }

    fn search(&mut self, line: &[u8]) {
        let Some(metric) = self.metric.filter(|_| self.found.len() < 2) else { return };
        // By far the most lines: finding groups costs several times as much as finding none.
        if !metric.is_in(line) {
            return;
        }
        let room = 2 - self.found.len();
        self.found.extend(metric.matches(line).take(room));
    }

    /// The one figure; `None` where none was to be read.
    pub(super) fn figure(self) -> Result<Option<Figure>, LaunchFailure> {
        if self.metric.is_none() {
            return Ok(None);
        }
        match &self.found[..] {
            [] => Err(LaunchFailure::NoMatch),
            [(text, next)] => match figure(text, next) {
                Some(figure) => Ok(Some(figure)),
                None => Err(LaunchFailure::NotAFigure { text: shortened(text) }),
            },
            [(first, _), (second, _), ..] => Err(LaunchFailure::SeveralMatches {
                first: shortened(first),
                second: shortened(second),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Option<f64>, LaunchFailure> {
        let metric = Metric::new("t=([0-9.]+)").expect("is a pattern");
        let mut matches = Matches::of(Some(&metric));
        let mut stream = Stream::default();
        pieces.iter().for_each(|piece| stream.take(piece, &mut matches));
        stream.finish(&mut matches);
        matches.figure().map(|figure| figure.map(|figure| figure.value))
    }

    #[test]
    fn lines_are_put_together_from_pieces_however_they_are_cut() {
        let text: &[u8] = b"start\nat t=1 us\r t=2\rt=34\r\nend t";
        for cut in 0..text.len() {
            for second in cut..text.len() {
                let pieces = [&text[..cut], &text[cut..second], &text[second..]];
                assert_eq!(read(&pieces), Ok(Some(34.0)), "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn a_line_is_what_a_terminal_would_show_of_it() {
        let mut stream = Stream::default();
        let mut matches = Matches::of(None);
        for (written, shown) in [
            (&b"12345\r67\n"[..], "67345"),
            (b"|- 10 MB/s\r/- 20 MB/s\r1#\n", "1# 20 MB/s"),
            (b"done 5%\rdone 50%\r\n", "done 50%"),
        ] {
            stream.take(written, &mut matches);
            assert_eq!(stream.finish(&mut matches), shown);
        }
    }

    #[test]
    fn none_and_several_are_told_apart() {
        assert_eq!(read(&[b"nothing\n"]), Err(LaunchFailure::NoMatch));
        let several = LaunchFailure::SeveralMatches { first: "1".into(), second: "2".into() };
        assert_eq!(read(&[b"t=1 t=2 t=3\n"]), Err(several.clone()));
        assert_eq!(read(&[b"t=1\nt=2"]), Err(several));
        assert_eq!(read(&[b"t=0"]), Err(LaunchFailure::NotAFigure { text: "0".into() }));
    }

    #[test]
    fn memory_stays_bounded() {
        let mut matches = Matches::of(None);
        let mut stream = Stream::default();
        let piece = vec![b'x'; 1 << 20];
        (0..16).for_each(|_| stream.take(&piece, &mut matches));
        assert!(stream.line.capacity() <= 2 * LONGEST_LINE, "{}", stream.line.capacity());
        let shown = stream.finish(&mut matches);
        assert!(shown.chars().count() == SHOWN + 1 && shown.ends_with("x…"), "{shown}");
    }

    #[test]
    fn the_last_line_is_kept_whether_lines_are_searched_or_passed_over() {
        let text: String = (0..20_000).map(|line| format!("{line}\n\n")).collect();
        let metric = Metric::new("(nothing)").expect("is a pattern");
        for metric in [None, Some(&metric)] {
            for piece in [1, 7, 4096, 5000, 65_536] {
                let (mut matches, mut stream) = (Matches::of(metric), Stream::default());
                text.as_bytes().chunks(piece).for_each(|part| stream.take(part, &mut matches));
                assert_eq!(stream.finish(&mut matches), "19999", "pieces of {piece}");
            }
        }
    }
}
