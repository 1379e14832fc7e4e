//! The controls of a check, gathered: what must be level, and what must stall.

use serde::{Deserialize, Serialize};

use super::sensitivity::Sensitivity;
use crate::analysis::{Finding, Verdict};
use crate::sample::Grid;

/// The schema of [`Controls`].
pub const SCHEMA: &str = "stackphase/controls/1";

/// The controls of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Controls {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What must not depend on the placement.
    pub null: Vec<NullControl>,
    /// What must stall.
    pub sensitivity: Option<Sensitivity>,
    /// Why that could not be measured, where it could not.
    pub sensitivity_unavailable: Option<String>,
    /// Whether all of them came out as they must.
    pub passed: bool,
}

/// One workload that must be level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NullControl {
    /// The workload.
    pub workload: String,
    /// Its form.
    pub arm: String,
    /// The grid.
    pub grid: Option<Grid>,
    /// What analysis says of it.
    pub verdict: Finding,
    /// Upper end of the interval of its largest difference, in percent.
    pub effect_high_percent: Option<f64>,
    /// Whether it is level.
    pub passed: bool,
}

impl Controls {
    /// Picks the null controls out of `verdicts`: the registers, and the round trip that realigns
    /// its buffer. No null control at all is a failure: nothing was proven.
    pub fn gather(verdicts: &[Verdict], sensitivity: Result<Sensitivity, String>) -> Self {
        let null: Vec<NullControl> = verdicts
            .iter()
            .filter(|v| v.workload == "registers" || v.arm == "realigned")
            .map(|v| NullControl {
                workload: v.workload.clone(),
                arm: v.arm.clone(),
                grid: v.grid,
                verdict: v.verdict,
                effect_high_percent: v.effect_high_percent,
                passed: v.verdict == Finding::Clear,
            })
            .collect();
        let level = !null.is_empty() && null.iter().all(|control| control.passed);
        let sees = sensitivity.as_ref().is_ok_and(|found| found.passed);
        let (sensitivity, sensitivity_unavailable) = match sensitivity {
            Ok(found) => (Some(found), None),
            Err(why) => (None, Some(why)),
        };
        Controls {
            schema: SCHEMA.to_owned(),
            null,
            sensitivity,
            sensitivity_unavailable,
            passed: level && sees,
        }
    }

    /// The controls as sentences, the null controls first.
    pub fn sentences(&self) -> Vec<String> {
        let failed: Vec<String> = self
            .null
            .iter()
            .filter(|control| !control.passed)
            .map(|control| {
                let grid = control.grid.map_or(String::new(), |grid| format!(", {grid} grid"));
                format!("{} ({}{grid}) is {}", control.workload, control.arm, control.verdict)
            })
            .collect();
        let null = match (self.null.is_empty(), failed.is_empty()) {
            (true, _) => "null control: none was measured, so that nothing proves the method \
                          level; measure registers as well"
                .to_owned(),
            (false, true) => "null control passed: registers, and a round trip that realigns its \
                              own buffer, are level at every placement"
                .to_owned(),
            (false, false) => format!(
                "null control FAILED: {}; what must be level is not, so distrust this run and \
                 repeat it on a quiet machine",
                failed.join(", ")
            ),
        };
        let sensitivity = match &self.sensitivity {
            None => format!(
                "sensitivity control not measured: {}",
                self.sensitivity_unavailable.as_deref().unwrap_or("the reason was not recorded")
            ),
            Some(found) => match found.cases.first() {
                Some(case) if case.stalls => format!(
                    "sensitivity control passed: {} takes {:.2} ns against {:.2} (+{:.0} %), so a \
                     stall would be seen",
                    case.stall, case.ns, found.against_ns, case.percent_above_reference
                ),
                _ => "sensitivity control FAILED: none of the accesses that most cores cannot \
                      forward is slower here (some cores forward from two stores); a clear verdict \
                      rests on the null controls alone"
                    .to_owned(),
            },
        };
        vec![null, sensitivity]
    }
}

#[cfg(test)]
mod tests {
    use super::super::sensitivity::SensitivityCase;
    use super::*;

    fn stall(stalls: bool) -> Sensitivity {
        let case = SensitivityCase {
            stall: "two stores".into(),
            ns: 6.5,
            percent_above_reference: 51.0,
            slower_rounds: 15,
            stalls,
        };
        Sensitivity { against_ns: 4.3, rounds: 15, cases: vec![case], passed: stalls }
    }

    fn level(finding: Finding) -> Verdict {
        let mut verdict = crate::report::fixture::zmm();
        verdict.workload = "registers".into();
        verdict.verdict = finding;
        verdict
    }

    #[test]
    fn both_kinds_must_pass() {
        let passed =
            |finding, stalls| Controls::gather(&[level(finding)], Ok(stall(stalls))).passed;
        assert!(passed(Finding::Clear, true));
        assert!(!passed(Finding::Inconclusive, true));
        assert!(!passed(Finding::Clear, false));
        assert!(!Controls::gather(&[], Ok(stall(true))).passed, "nothing measured proves nothing");
    }

    #[test]
    fn failures_are_sentences() {
        let controls = Controls::gather(&[level(Finding::Affected)], Err("no kernel".into()));
        let text = controls.sentences().join("\n");
        assert!(text.contains("null control FAILED: registers"), "{text}");
        assert!(text.contains("not measured: no kernel"), "{text}");
    }
}
