// SPDX-License-Identifier: GPL-2.0-or-later
//! Has the nodes of a Slurm say whether they can make shards, before anything runs.

use super::slurm::{PACKAGE, Slurm, ask, in_any_case, job_name};
use crate::Error;
use crate::followed::shell_words;
use crate::hunting::{Say, at_once, lock};
use rig::tool;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// How long a node may take to say what it has.
const CHECKING: Duration = Duration::from_secs(900);
/// How many seconds before that a node may be busy with the work of others.
const BUSY: u32 = 60;
/// How many nodes are asked at once.
const AT_ONCE: usize = 16;

impl Slurm {
    /// The nodes that could run a task now or soon.
    fn nodes(&self) -> Result<BTreeSet<String>, Error> {
        let states = "--states=idle,mixed,allocated,completing";
        let words = ["--noheader", "--Node", "--responding", "--format=%N", states];
        let nodes = ask("sinfo", &[&words[..], &[&self.of_partition()]].concat())?;
        Ok(nodes.split_whitespace().map(str::to_owned).collect())
    }

    /// Has each node run a command that succeeds where shards can be made. `directory` is that for what concerns
    /// shards. A node that is busy is not waited for: a task there checks the same before it makes anything.
    ///
    /// # Errors
    /// If a node is unfit, with what each such node says. If there is no node, and if Slurm does not let one be asked.
    pub fn check(&self, command: &[String], directory: &Path, say: Say) -> Result<(), Error> {
        let nodes = self.nodes()?;
        if nodes.is_empty() {
            let partition = &self.partition;
            return Err(Error::Unfit(format!(
                "Slurm has no node in the partition {partition} that answers; see sinfo, or name another by --partition"
            )));
        }
        say(&format!("{} nodes say whether they can make shards", nodes.len()));
        let words = shell_words(command);
        // Each node's words come as a line, with its name before them, whichever way it fails.
        let script = format!(
            "said=$({words} 2>&1) || echo \"@$SLURMD_NODENAME: $(echo \"$said\" | tail -n 3 | tr '\\n' ' ')\""
        );
        let nodes: Vec<String> = nodes.into_iter().collect();
        let asked = Mutex::new(Asked::default());
        at_once(AT_ONCE, nodes.len(), |n| {
            let node = &nodes[n];
            let said = self.asked(node, &script, directory);
            let mut asked = lock(&asked);
            match said {
                Ok(said) => {
                    let unfit = said.lines().filter_map(|line| line.strip_prefix('@'));
                    asked.unfit.extend(unfit.map(str::to_owned));
                }
                Err(Error::Rig(rig::Error::Program { why, .. })) if is_busy(&why) => {
                    asked.busy.push(node.clone());
                }
                Err(e) => {
                    asked.failed.get_or_insert((node.clone(), e));
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        let asked = asked.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        asked.judged(nodes.len(), say)
    }

    /// What a node says to a script.
    fn asked(&self, node: &str, script: &str, directory: &Path) -> Result<String, Error> {
        let mut srun = Command::new("srun");
        let job = format!("{}-check-{node}", job_name(directory));
        srun.args(["--quiet", "--nodes=1", "--ntasks=1", "--input=none", "--time=10"]);
        srun.args([format!("--nodelist={node}"), format!("--immediate={BUSY}")]);
        srun.arg(format!("--job-name={job}")).arg(self.of_partition());
        srun.args(["sh", "-c", script]);
        let said = tool::run(&mut srun, PACKAGE, CHECKING).inspect_err(|_| {
            // An srun that was killed gives its nodes back only when its time is over.
            let _ = in_any_case(|| ask("scancel", &[&format!("--name={job}")]));
        });
        Ok(said?)
    }
}

/// What the nodes of a partition said.
#[derive(Default)]
struct Asked {
    /// The words of those that cannot make shards.
    unfit: Vec<String>,
    /// Those that had no time.
    busy: Vec<String>,
    /// The first that could not be asked, and why.
    failed: Option<(String, Error)>,
}

impl Asked {
    fn judged(self, count: usize, say: Say) -> Result<(), Error> {
        let Asked { unfit, busy, failed } = self;
        match failed {
            Some((_, e)) if e.is_interruption() => return Err(e),
            Some((node, e)) => {
                return Err(Error::Unfit(format!(
                    "Slurm does not let the node {node} say what it has: {e}\nSee sinfo, or name another partition by --partition"
                )));
            }
            None => {}
        }
        if !busy.is_empty() {
            let busy = busy.join(", ");
            say(&format!(
                "! not asked, since they are busy for more than {BUSY} s: {busy}; each task checks the same on its node before it makes a shard"
            ));
        }
        if unfit.is_empty() {
            return Ok(());
        }
        let several = format!("{} of {count} nodes cannot make shards of this work", unfit.len());
        Err(Error::MadeOtherwise(format!(
            "{several}:\n  {}\nMake them alike, or name a partition without them by --partition",
            unfit.join("\n  ")
        )))
    }
}

/// Whether srun says that a node has no time now.
fn is_busy(said: &str) -> bool {
    said.contains("Unable to allocate resources")
        && ["nodes are busy", "node not available", "Immediate"].iter().any(|it| said.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(asked: Asked) -> (Result<(), Error>, String) {
        let told = Mutex::new(String::new());
        let judged = asked.judged(3, &|said| lock(&told).push_str(said));
        (judged, told.into_inner().expect("nobody panicked"))
    }

    #[test]
    fn unfit_nodes_are_named_and_busy_ones_are_not_waited_for() {
        let (fit, told) = judged(Asked::default());
        assert!(fit.is_ok() && told.is_empty());
        let busy = Asked { busy: vec!["n2".into()], ..Asked::default() };
        let (fit, told) = judged(busy);
        assert!(fit.is_ok() && told.contains("busy for more than 60 s: n2"), "{told}");
        let unfit = Asked { unfit: vec!["n3: QEMU is 9".into()], ..Asked::default() };
        let why = judged(unfit).0.unwrap_err().to_string();
        assert!(why.contains("1 of 3 nodes") && why.contains("n3: QEMU is 9"), "{why}");
        let failed = Error::File("more nodes than a job may have".into());
        let failed = Asked { failed: Some(("n1".into(), failed)), ..Asked::default() };
        let why = judged(failed).0.unwrap_err().to_string();
        assert!(why.contains("node n1") && why.contains("--partition"), "{why}");
        let stopped = Asked { failed: Some(("n1".into(), Error::Interrupted)), ..Asked::default() };
        assert!(judged(stopped).0.unwrap_err().is_interruption());
    }

    #[test]
    fn a_busy_node_is_told_from_one_that_slurm_refuses() {
        assert!(is_busy("srun: error: Unable to allocate resources: Requested nodes are busy"));
        assert!(!is_busy("srun: error: Unable to allocate resources: Invalid qos specification"));
        let never = "Requested node configuration is not available";
        assert!(!is_busy(&format!("srun: error: Unable to allocate resources: {never}")));
        assert!(!is_busy("srun: error: Unable to contact slurm controller"));
    }
}
