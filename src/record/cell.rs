//! How one sample becomes one line of CSV.

use std::io::Write;

use crate::sample::{COLUMNS, Sample};

/// The suffix of a counter's column.
pub(crate) const EVENT_SUFFIX: &str = "_per_op";

/// Appends the header line.
pub(crate) fn put_header(line: &mut Vec<u8>, events: &[String]) {
    for name in COLUMNS {
        put_text(line, name);
    }
    for event in events {
        put_text(line, &format!("{event}{EVENT_SUFFIX}"));
    }
    end_line(line);
}

/// Appends the line of `sample`, with `events` in the order of the header. `sample.events` must
/// hold no other event.
pub(crate) fn put_sample(line: &mut Vec<u8>, sample: &Sample, events: &[String]) {
    put_text(line, &sample.probe);
    put_text(line, &sample.workload);
    put_number(line, sample.len);
    put_text(line, &sample.arm);
    put_text(line, sample.routine.as_deref().unwrap_or_default());
    put_text(line, sample.placement.as_str());
    put_number(line, Some(sample.placement_value));
    put_number(line, Some(sample.launch));
    put_number(line, Some(sample.round));
    put_number(line, sample.order);
    for address in [sample.sp, sample.buf, sample.src] {
        put_address(line, address);
    }
    for residue in [sample.buf_mod64(), sample.buf_and_31(), sample.heap_mod64, sample.text_mod64] {
        put_number(line, residue);
    }
    put_number(line, sample.env_bytes);
    put_number(line, sample.argv_bytes);
    put_number(line, sample.cpu);
    put_number(line, sample.iterations);
    put_float(line, sample.ns_per_op);
    put_float(line, sample.value);
    put_text(line, sample.unit.as_deref().unwrap_or_default());
    put_text(line, &sample.params.to_string());
    put_float(line, sample.guard_ns);
    put_float(line, sample.running_ratio);
    put_number(line, sample.disturbed);
    put_text(line, sample.status.as_str());
    for event in events {
        let value = sample.events.iter().find(|(name, _)| name == event).and_then(|(_, v)| *v);
        put_float(line, value);
    }
    end_line(line);
}

fn put(line: &mut Vec<u8>, cell: impl std::fmt::Display) {
    // Writing to a vector cannot fail.
    let _ = write!(line, "{cell},");
}

fn put_number(line: &mut Vec<u8>, number: Option<impl std::fmt::Display>) {
    match number {
        Some(number) => put(line, number),
        None => line.push(b','),
    }
}

fn put_address(line: &mut Vec<u8>, address: Option<u64>) {
    put_number(line, address.map(|address| format!("{address:#x}")));
}

/// The shortest text that reads back as the same number. What is not finite was not measured.
fn put_float(line: &mut Vec<u8>, number: Option<f64>) {
    match number {
        // Without an exponent the extremes would be hundreds of digits long.
        Some(x) if x != 0.0 && !(1e-5..1e16).contains(&x.abs()) && x.is_finite() => {
            put(line, format_args!("{x:e}"));
        }
        Some(x) if x.is_finite() => put(line, x),
        _ => line.push(b','),
    }
}

/// Quoted where a reader would otherwise see another cell. A line end becomes a blank: one row is
/// one line, so that what follows the last line end is a torn row and nothing else.
fn put_text(line: &mut Vec<u8>, text: &str) {
    if text.contains(['"', ',', '\n', '\r']) {
        let text = text.replace(['\n', '\r'], " ").replace('"', "\"\"");
        put(line, format_args!("\"{text}\""));
    } else {
        put(line, text);
    }
}

/// Every cell ends in a comma; the last one's becomes the end of the line.
fn end_line(line: &mut Vec<u8>) {
    line.pop();
    line.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Params, Placement};

    fn line(sample: &Sample, events: &[String]) -> String {
        let mut line = Vec::new();
        put_sample(&mut line, sample, events);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn what_was_not_measured_is_empty() {
        let sample = Sample::new("phase", "blake3", Placement::Shift, 16, 2, 3);
        let expected = format!("phase,blake3,,default,,shift,16,2,3{},ok\n", ",".repeat(19));
        assert_eq!(line(&sample, &[]), expected);
        assert_eq!(line(&sample, &["cycles".into()]).matches(',').count(), COLUMNS.len());
    }

    #[test]
    fn every_column_in_its_form() {
        let mut sample = Sample::new("pad", "blake3", Placement::Pad, 140, 0, 11);
        sample.len = Some(64);
        sample.arm = "zmm".into();
        sample.routine = Some("__memmove_avx512_unaligned_erms".into());
        sample.order = Some(7);
        sample.sp = Some(0x7fff_ffff_e000);
        sample.buf = Some(0x7fff_ffff_e070);
        sample.src = Some(0x10);
        sample.heap_mod64 = Some(16);
        sample.text_mod64 = Some(0);
        sample.env_bytes = Some(145);
        sample.argv_bytes = Some(11);
        sample.cpu = Some(8);
        sample.iterations = Some(1700);
        sample.ns_per_op = Some(59.0);
        sample.params = Params::new().with("grid", "page").with("gap", 3);
        sample.guard_ns = Some(0.25);
        sample.running_ratio = Some(1.0);
        sample.disturbed = Some(false);
        sample.events = vec![("stli".into(), Some(2.005)), ("cycles".into(), None)];
        assert_eq!(
            line(&sample, &["cycles".into(), "stli".into()]),
            "pad,blake3,64,zmm,__memmove_avx512_unaligned_erms,pad,140,0,11,7,0x7fffffffe000,\
             0x7fffffffe070,0x10,48,16,16,0,145,11,8,1700,59,,,gap=3;grid=page,0.25,1,false,ok,\
             ,2.005\n"
        );
    }

    #[test]
    fn extreme_numbers_are_short_and_read_back() {
        for x in [1e300, 1e-300, f64::MIN_POSITIVE, 0.1 + 0.2, 1e16, 123_456_789.123_456_7] {
            let mut cell = Vec::new();
            put_float(&mut cell, Some(x));
            cell.pop();
            let text = String::from_utf8(cell).unwrap();
            assert_eq!(text.parse(), Ok(x));
            assert!(text.len() < 25, "{text}");
        }
        let mut cell = Vec::new();
        put_float(&mut cell, Some(f64::NAN));
        assert_eq!(cell, b",");
    }
}
