//! Reads single cells, each fault with its column and what mends it.

use super::ReadError;
use super::header::{Column, Header};
use super::read_error::shorten;
use super::rows::Row;

/// Figures beyond this many units in either direction are faults of the file: 1e30 ns is longer
/// than the universe has stood, and such numbers would leave the range in which effects can be
/// computed.
const EXTREME: f64 = 1e30;

/// A row together with what is needed to name it.
pub(crate) struct Fields<'a> {
    pub file: &'a str,
    pub header: &'a Header,
    pub row: Row<'a>,
}

impl<'a> Fields<'a> {
    pub fn text(&self, column: Column) -> &'a str {
        self.header.cell(&self.row, column)
    }

    /// The cell's text, or `None` where nothing was measured.
    pub fn some(&self, column: Column) -> Option<&'a str> {
        let text = self.text(column);
        (!text.is_empty()).then_some(text)
    }

    /// A whole number that fits its type.
    pub fn number<T: std::str::FromStr>(&self, column: Column) -> Result<Option<T>, ReadError> {
        let Some(text) = self.some(column) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => match integral(text).and_then(|text| text.parse().ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.not_whole(column, text)),
            },
        }
    }

    #[cold]
    fn not_whole(&self, column: Column, text: &str) -> ReadError {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let problem = if whole { "is out of range" } else { "is not a whole number" };
        self.fault(column, text, problem, "write a whole number, or leave the cell empty")
    }

    /// An address, hexadecimal after `0x` or else decimal.
    pub fn address(&self, column: Column) -> Result<Option<u64>, ReadError> {
        let Some(text) = self.some(column) else { return Ok(None) };
        let address = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            // `from_str_radix` would take a sign.
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
            _ => text.parse(),
        };
        address.map(Some).map_err(|_| {
            self.fault(
                column,
                text,
                "is not an address",
                "write it as 0x…, or leave the cell empty",
            )
        })
    }

    /// A residue modulo `modulus`.
    pub fn residue(&self, column: Column, modulus: u8) -> Result<Option<u8>, ReadError> {
        match self.number::<u64>(column)? {
            None => Ok(None),
            Some(residue) if residue < u64::from(modulus) => Ok(Some(residue as u8)),
            Some(residue) => Err(self.fault(
                column,
                &residue.to_string(),
                &format!("is not a residue from 0 to {}", modulus - 1),
                "write the address modulo the column's number, or leave the cell empty",
            )),
        }
    }

    /// Any finite number.
    pub fn float(&self, column: Column) -> Result<Option<f64>, ReadError> {
        self.float_at(self.text(column), self.header.name(column))
    }

    /// Any finite number in `text`, which stands in the column `name`.
    pub fn float_at(&self, text: &str, name: &str) -> Result<Option<f64>, ReadError> {
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            parsed => {
                let problem = if parsed.is_ok() { "is not finite" } else { "is not a number" };
                let remedy = "write a number, or leave the cell empty where nothing was measured";
                Err(self.fault_in(name, text, problem, remedy))
            }
        }
    }

    /// A time or another figure of which logarithms are taken: finite and above 0.
    pub fn figure(&self, column: Column) -> Result<Option<f64>, ReadError> {
        let remedy = "leave the cell empty where nothing was measured, or remove the row";
        match self.float(column)? {
            Some(figure) if figure <= 0.0 => {
                Err(self.fault(column, self.text(column), "is not above 0", remedy))
            }
            Some(figure) if !(1.0 / EXTREME..=EXTREME).contains(&figure) => {
                Err(self.fault(column, self.text(column), "is no plausible figure", remedy))
            }
            figure => Ok(figure),
        }
    }

    /// `true`, `false`, or unknown.
    pub fn flag(&self, column: Column) -> Result<Option<bool>, ReadError> {
        match self.text(column) {
            "" => Ok(None),
            "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            other => {
                Err(self.fault(column, other, "is neither true nor false", "write one of the two"))
            }
        }
    }

    /// A word of a fixed vocabulary, or anything else with its own error.
    pub fn word<T>(&self, column: Column) -> Result<Option<T>, ReadError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.some(column) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| {
            ReadError::file(self.file, shorten_clause(&error.to_string()), "correct the cell")
                .in_row(self.row.number)
                .in_column(self.header.name(column))
        })
    }

    fn fault(&self, column: Column, found: &str, problem: &str, remedy: &str) -> ReadError {
        self.fault_in(self.header.name(column), found, problem, remedy)
    }

    #[cold]
    fn fault_in(&self, name: &str, found: &str, problem: &str, remedy: &str) -> ReadError {
        ReadError::file(self.file, format!("`{}` {problem}", shorten(found)), remedy)
            .in_row(self.row.number)
            .in_column(name)
    }
}

/// `16.0` as `16`: data frames with empty cells write whole numbers so.
#[cold]
fn integral(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once('.')?;
    fraction.bytes().all(|b| b == b'0').then_some(whole)
}

/// An error's own words with long foreign text cut out of their middle.
fn shorten_clause(text: &str) -> String {
    let count = text.chars().count();
    if count <= 160 {
        return text.to_owned();
    }
    let head: String = text.chars().take(60).collect();
    let tail: String = text.chars().skip(count - 90).collect();
    format!("{head}…{tail}")
}
