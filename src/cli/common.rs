//! Options that every measuring subcommand has.

use std::path::PathBuf;

/// Options of every subcommand that measures.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Run directory [default: results/STAMP-CPU]; never overwritten
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the unfinished run in DIR
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// Seed of every shuffle and random message; recorded [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Logical processor to pin to [default: the last one permitted]
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Visits to every placement in each launch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Processes; the unit of every interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub launches: Option<u32>,
    /// Fewer rounds, for a first look (counts under each command's help)
    #[arg(long)]
    pub quick: bool,
    /// Print the resolved plan and stop
    #[arg(long)]
    pub plan: bool,
    /// Run at real-time priority, with sleeps that stay below the kernel's throttle
    #[arg(long)]
    pub realtime: bool,
    /// Keep host name, user, home path and command arguments in postable files
    #[arg(long)]
    pub no_redact: bool,
}
