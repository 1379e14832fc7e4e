//! How often analysis errs, family by family, on sweeps whose truth is known.
//!
//!     cargo bench --bench error_rates [-- SWEEPS [NAME]]
//!
//! `SWEEPS` a family (200 by default); `NAME` keeps the families whose name contains it. Exit status
//! 1 when a family misses what is required of it.

use std::process::ExitCode;

use stackphase::analysis::simulate::families::{FAMILIES, Named, rates};

fn main() -> ExitCode {
    // Cargo adds `--bench` of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let sweeps = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(200);
    let name = arguments.next().unwrap_or_default();
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  required",
        "family (rates in %)", "affected", "clear", "period", "bands", "rule", "covered"
    );
    let mut met = true;
    for family in FAMILIES.iter().filter(|family| family.name.contains(&name)) {
        met &= print(family, sweeps);
    }
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(named: &Named, sweeps: usize) -> bool {
    let rates = rates(named, sweeps, 1);
    let missed = named.required.missed_by(&rates, sweeps);
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{:.1}", 100.0 * s));
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  {}{}",
        named.name,
        percent(Some(rates.affected)),
        percent(Some(rates.clear)),
        percent(rates.period),
        percent(rates.bands),
        percent(rates.rule),
        percent(Some(rates.covered)),
        named.required,
        missed.as_ref().map_or(String::new(), |missed| format!("  MISSED: {missed}")),
    );
    missed.is_none()
}
