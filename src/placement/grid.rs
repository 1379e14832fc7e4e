//! The two grids of shifts that every phase experiment visits.

/// The period of page effects: address aliasing and page-crossing splits repeat every 4096 bytes,
/// also where the system's pages are larger.
const PERIOD: usize = 4096;

/// Sixteen shifts of 16 bytes: four lines of 64 bytes, each of its four residues four times.
pub fn line_shifts() -> Vec<usize> {
    (0..256).step_by(16).collect()
}

/// Every 16 bytes of 8192: two periods, so that a period of 4096 is seen to repeat.
pub fn page_shifts() -> Vec<usize> {
    (0..2 * PERIOD).step_by(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_grids_visit_each_residue_alike() {
        for (shifts, count) in [(line_shifts(), 16), (page_shifts(), 512)] {
            assert_eq!(shifts.len(), count);
            for residue in [0, 16, 32, 48] {
                let visits = shifts.iter().filter(|&&shift| shift % 64 == residue).count();
                assert_eq!(visits, count / 4);
            }
        }
    }
}
