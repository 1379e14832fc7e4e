//! `stackphase phase`: the trampoline grid.

use super::run::{Counts, Run, StderrTalk, plan_document};
use super::{Exit, Output, RunArgs};
use crate::Failure;
use crate::launch::Order;
use crate::probes::Campaign;
use crate::probes::phase::{GridPlan, PhasePlan};
use crate::probes::retired::count_into;
use crate::record::VERDICT;
use crate::sample::Grid;
use crate::workloads::{Name, SinkKind, Spec};

const FULL: Counts = Counts { rounds: 12, launches: 3 };
const QUICK: Counts = Counts { rounds: 6, launches: 2 };

/// Arguments of `phase`.
#[derive(clap::Args)]
#[command(after_help = "Defaults: 3 launches of 12 rounds; --quick: 2 launches of 6 rounds.\n\n\
Examples:
  stackphase phase                               blake3 at 64 bytes, 16 shifts of 16 bytes
  stackphase phase --page                        every 16 bytes of two pages
  stackphase phase --workload copychain --len 96 a copy of a copy
  stackphase phase --align line                  the anchor `and rsp,-64; sub rsp,SHIFT`")]
pub struct PhaseArgs {
    #[command(flatten)]
    run: RunArgs,
    /// What to time; may be given several times
    #[arg(long, value_name = "NAME", default_value = "blake3", value_parser = super::workload_name)]
    workload: Vec<Name>,
    /// Bytes an operation
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    len: usize,
    /// Sixteen shifts of 16 bytes (the default)
    #[arg(long)]
    line: bool,
    /// Every 16 bytes of 8192: two periods of 4096
    #[arg(long)]
    page: bool,
    /// What the shift is counted from
    #[arg(long, value_name = "ANCHOR", default_value = "page", value_parser = ["page", "line"])]
    align: String,
    /// Who takes the hashes
    #[arg(long, value_name = "SINK", default_value = "black-box", value_parser = ["black-box", "xor"])]
    sink: String,
    /// Where in its 16-aligned stack buffer a copy or round trip begins
    #[arg(long, value_name = "0..15", default_value_t = 0)]
    frame_offset: usize,
    /// Ascending shows what goes wrong: no conclusion is drawn from it
    #[arg(long, value_name = "ORDER", default_value = "shuffled", value_parser = ["shuffled", "ascending"])]
    order: String,
    /// Run on a spawned thread's stack
    #[arg(long)]
    thread: bool,
    #[command(flatten)]
    gate: super::GateArgs,
}

impl PhaseArgs {
    fn plan(&self) -> Result<PhasePlan, Failure> {
        let counts = self.run.counts(FULL, QUICK);
        let sink = if self.sink == "xor" { SinkKind::Xor } else { SinkKind::BlackBox };
        let mut grids = Vec::new();
        for &name in &self.workload {
            let spec = Spec { sink, frame_offset: self.frame_offset, ..Spec::new(name, self.len) };
            spec.check()?;
            let wanted = [(self.line || !self.page, Grid::Line), (self.page, Grid::Page)];
            for grid in wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, grid)| grid) {
                let plan = GridPlan::new(spec.clone(), grid, counts.rounds);
                grids.push(GridPlan { alignment: self.align.clone(), ..plan });
            }
        }
        Ok(PhasePlan {
            probe: "phase".to_owned(),
            grids,
            launches: counts.launches,
            extra_rounds: 3,
            order: if self.order == "ascending" { Order::Ascending } else { Order::Shuffled },
            seed: self.run.resolved_seed(),
            cpu: self.run.resolved_cpu()?,
            on_thread: self.thread,
        })
    }
}

/// Runs the grid and prints its verdicts.
///
/// # Errors
/// When the plan cannot be, or nothing could be measured.
pub fn run(args: &PhaseArgs, output: &mut Output) -> Result<Exit, Failure> {
    let plan = args.plan()?;
    if args.run.plan {
        return output.document(&plan_document(&plan)).map(|()| Exit::Done);
    }
    let mut run = Run::open(&args.run, &[], plan)?;
    let launches = run.plan.launches(&run.finished);
    let mut talk = StderrTalk { output };
    let mut campaign = Campaign::new(&mut run.sink, &mut talk)?;
    campaign.at_realtime_priority(args.run.realtime);
    let measured = campaign.run(&launches);
    let held = campaign.held();
    if let Err(error) = measured {
        return run.stopped(error, output);
    }
    run.write_machine(&held)?;
    let mut verdicts = super::judge_directory(&run.directory, run.plan.seed)?;
    if let Some(why) = count_into(&mut verdicts, 16) {
        output.warn(&why.to_string());
    }
    run.directory.write_document(VERDICT, &verdicts)?;
    super::print_verdicts(&verdicts, Some(run.directory.path()), output)?;
    Ok(args.gate.exit(&verdicts))
}
