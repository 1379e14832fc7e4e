//! Names of run directories: a UTC stamp and the processor.

use std::time::{SystemTime, UNIX_EPOCH};

/// `YYYYMMDDThhmmssZ`: sorts by time and is a legal file name everywhere. Times before 1970 are
/// given as 1970.
pub(crate) fn utc_stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The Gregorian date of a day counted from 1970-01-01, by eras of 400 years that begin in March
/// (the leap day is then the last day of a year).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Lower-case letters, digits and single hyphens; at most 40 of them; `unknown` if none is left.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        if slug.len() >= 40 {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unknown".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stamp(seconds: u64) -> String {
        utc_stamp(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn known_times() {
        assert_eq!(stamp(0), "19700101T000000Z");
        assert_eq!(stamp(951_782_399), "20000228T235959Z");
        assert_eq!(stamp(951_782_400), "20000229T000000Z");
        assert_eq!(stamp(1_787_913_296), "20260828T103456Z");
        assert_eq!(stamp(4_107_542_400), "21000301T000000Z");
    }

    #[test]
    fn days_run_on_without_gap_or_repeat() {
        // A plain calendar beside the closed form, over 250 years.
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..91_311 {
            assert_eq!(civil_from_days(days), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn slugs_are_safe_names() {
        assert_eq!(slug("AMD EPYC 9R45 (Zen 5)"), "amd-epyc-9r45-zen-5");
        assert_eq!(slug("../../etc"), "etc");
        assert_eq!(slug("\u{1b}[31m"), "31m");
        assert_eq!(slug("—"), "unknown");
        assert!(slug(&"x y".repeat(99)).len() <= 40);
    }
}
