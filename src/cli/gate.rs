//! `--gate`: an exit status that a build can act on.

use super::Exit;
use crate::analysis::{Finding, VerdictDocument};
use crate::sample::Role;

/// Whether the verdict decides the exit status.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GateArgs {
    /// Exit with 3 when a subject is affected, 4 when inconclusive
    #[arg(long)]
    pub gate: bool,
    /// Gate on this workload instead of blake3; may be given several times
    #[arg(long, value_name = "NAME", requires = "gate")]
    pub gate_on: Vec<String>,
}

impl GateArgs {
    /// The exit status for `document`.
    pub fn exit(&self, document: &VerdictDocument) -> Exit {
        if !self.gate {
            return Exit::Done;
        }
        let counts = |workload: &str, role: Role| {
            if self.gate_on.is_empty() {
                workload == "blake3" && role == Role::Subject
            } else {
                self.gate_on.iter().any(|name| name == workload)
            }
        };
        let findings: Vec<Finding> = document
            .verdicts
            .iter()
            .filter(|verdict| counts(&verdict.workload, verdict.role))
            .map(|verdict| verdict.verdict)
            .collect();
        if findings.contains(&Finding::Affected) {
            Exit::GateAffected
        } else if findings.is_empty() || findings.contains(&Finding::Inconclusive) {
            // Nothing that gates was measured: silence must not pass for approval.
            Exit::GateInconclusive
        } else {
            Exit::Done
        }
    }
}
