//! What a command prints, drained in bounded memory: matched line by line, and forgotten.

use super::failure::LaunchFailure;
use super::metric::{Figure, Metric, figure};

/// A longer line is cut: what follows is not searched.
const LONGEST_LINE: usize = 64 << 10;
/// How much of a line a message shows.
const SHOWN: usize = 200;

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
    last: String,
}

impl Stream {
    /// Takes what was read.
    pub(super) fn take(&mut self, bytes: &[u8], matches: &mut Matches<'_>) {
        let mut rest = bytes;
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
        let shown = String::from_utf8_lossy(&self.line[..self.line.len().min(SHOWN)]);
        if !shown.trim().is_empty() {
            self.last = shown.trim().to_owned();
        }
        self.line.clear();
    }

    /// The stream has ended; returns its last line that is not empty.
    pub(super) fn finish(&mut self, matches: &mut Matches<'_>) -> String {
        if !self.line.is_empty() {
            self.end_line(matches);
        }
        std::mem::take(&mut self.last)
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

    fn search(&mut self, line: &[u8]) {
        let Some(metric) = self.metric.filter(|_| self.found.len() < 2) else { return };
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
                None => Err(LaunchFailure::NotAFigure { text: text.clone() }),
            },
            [(first, _), (second, _), ..] => {
                Err(LaunchFailure::SeveralMatches { first: first.clone(), second: second.clone() })
            }
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
        assert_eq!(stream.finish(&mut matches).len(), SHOWN);
    }
}
