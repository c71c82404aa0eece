// SPDX-License-Identifier: GPL-2.0-or-later
//! What each command prints with `--json`. Each command has a module here, and its types are the format.
//! docs/COMMAND.schema.json are generated from these types with their descriptions (`make contract`). Whoever adds,
//! removes or renames a key raises the number of the format.

mod atlas;
mod blame;
mod bound;
mod breed;
mod census;
mod compare;
mod doctor;
mod effects;
mod explain;
mod history;
mod hunt;
mod kernels;
mod list;
mod live;
mod minimise;
mod patch;
mod proof;
mod replay;
mod run;
mod show;
mod tune;
mod windows;

pub use atlas::Atlas;
pub use blame::Blame;
pub use bound::Bound;
pub use breed::Bred;
pub use census::Census;
pub use compare::Compare;
pub use doctor::{Check, Doctor, State};
pub use effects::{Hunted, HuntedWorst, Quiet, QuietAnswers, QuietDifference, Reason};
pub use explain::{Explain, ExplainCosts};
pub use history::History;
pub use hunt::Hunt;
pub use kernels::{Available, Kernels, Offered};
pub use list::List;
pub use live::Live;
pub use minimise::Minimised;
pub use patch::{PatchProof, PatchedCost, PatchedKernel, PatchedRung, PatchedStretch};
pub use proof::{KernelProof, MachineProof, Pairs, Proof, ProofCost, ProofRow, unsound};
pub use replay::Replay;
pub use run::{CellError, Runs};
pub use show::Show;
pub use tune::Tune;
pub use windows::Windows;
