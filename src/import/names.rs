//! Sizes, names and numbers as result files spell them.

use crate::record::ReadError;

/// `64 B`, `16 KiB`, `1 MiB` or plain `64` in bytes.
pub(super) fn bytes(label: &str) -> Option<u64> {
    let label = label.trim();
    let digits = label.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = label[..digits].parse().ok()?;
    let unit: u64 = match label[digits..].trim() {
        "" | "B" | "bytes" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The workload that a contender is: stackphase's own name where it has one.
pub(super) fn workload(contender: &str) -> String {
    let plain: String =
        contender.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    match plain.as_str() {
        "blake3" => "blake3".to_owned(),
        "sha256" => "sha256".to_owned(),
        "sha3256" => "sha3-256".to_owned(),
        "crc32" => "crc32".to_owned(),
        _ => contender.trim().to_lowercase(),
    }
}

/// A figure as it stands in a text, with half a unit of its last digit.
pub(super) fn printed(text: &str) -> Option<(f64, f64)> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let resolution = 0.5 * 10f64.powi(-(decimals.min(300) as i32));
    is_figure(value).then_some((value, resolution))
}

/// Whether a number can be a time: within the range in which effects can be computed.
pub(super) fn is_figure(value: f64) -> bool {
    (1e-30..=1e30).contains(&value)
}

/// The error for a cell that does not hold what it should.
pub(super) fn bad_cell(
    file: &str,
    row: usize,
    column: &str,
    cell: &str,
    wanted: &str,
) -> ReadError {
    let short: String = cell.chars().take(40).collect();
    ReadError::file(
        file,
        format!("`{short}` is not {wanted}"),
        "restore the file, or remove the row",
    )
    .in_row(row as u64)
    .in_column(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_they_are_printed() {
        assert_eq!(bytes("64 B"), Some(64));
        assert_eq!(bytes(" 16 KiB "), Some(16_384));
        assert_eq!(bytes("1 MiB"), Some(1 << 20));
        assert_eq!(bytes("64"), Some(64));
        for label in ["", "B", "64 kg", "99999999999999999999 B", "18446744073709551615 KiB", "é"]
        {
            assert_eq!(bytes(label), None, "{label}");
        }
    }

    #[test]
    fn contenders_by_our_names() {
        assert_eq!(workload("BLAKE3"), "blake3");
        assert_eq!(workload("SHA-256 "), "sha256");
        assert_eq!(workload("SHA3-256"), "sha3-256");
        assert_eq!(workload("Ascon"), "ascon");
    }

    #[test]
    fn figures_carry_their_resolution() {
        assert_eq!(printed("0.89"), Some((0.89, 0.5 * 10f64.powi(-2))));
        assert_eq!(printed("59"), Some((59.0, 0.5)));
        for text in ["", "-1", "NaN", "inf", "0.00", "1e99", "+1"] {
            assert_eq!(printed(text), None, "{text}");
        }
    }
}
