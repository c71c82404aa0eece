// SPDX-License-Identifier: GPL-2.0-or-later
//! The text below the help of each command: its exit status, and its examples. A test parses each example.

use super::Arguments;
use clap::{Command, CommandFactory};
use probes::PROBES;

const EXIT_CODES: &str = "Exit status:
  0   every limit was kept
  1   a limit was exceeded, or a regression was found
  2   wrong usage or a wrong experiment
  3   no verdict: the run is inconclusive or invalid
  69  something outside failed: no QEMU, no kernel, a guest that does not boot
  130 the user interrupted the command";

const COMPARE_EXIT_CODES: &str = "Exit status: 0; 1 if a --fail-if condition holds; 3 if a run lacks the number of a condition, or if the runs have no responder in common.";

const APPLY_EXIT_CODES: &str = "Exit status: 0; 2 for a wrong plan or knob, before anything is changed; 69 if a knob was refused, or if the journal cannot be used. With --goal also 1 if the goal is not reached, and 3 if that cannot be told.";

const PROVE_EXIT_CODES: &str = "Exit status: 0 if the pairs say of every knob whether it has an effect; 3 if they cannot tell for one, or if it could not be measured; 2 for an unknown knob.";

const UNDO_EXIT_CODES: &str = "Exit status: 0; 3 if a setting keeps a value that somebody else gave it; 69 if a setting could not be taken back, or if the journal cannot be used.";

/// The examples of each command, by its words. The examples of a probe are in the definition of the probe.
const EXAMPLES: [(&str, &[&str]); 40] = [
    (
        "",
        &[
            "onset run experiments/ladder.toml --report report.html",
            "onset measure periodic --duration 30s --limit max=100us",
        ],
    ),
    ("doctor", &["onset doctor", "onset doctor --json"]),
    ("kernels", &["onset kernels fetch newest newest-rt", "onset kernels list --available"]),
    ("kernels list", &["onset kernels list", "onset kernels list --available"]),
    ("kernels fetch", &["onset kernels fetch 6.12 6.12-rt", "onset kernels fetch newest"]),
    ("kernels remove", &["onset kernels remove 6.1 6.1-rt", "onset kernels remove --build-roots"]),
    (
        "kernels add-deb",
        &[
            "onset kernels add-deb linux-image-*.deb linux-headers-*.deb --name mine",
            "onset kernels add-deb linux-image-6.12.8.deb --replace",
        ],
    ),
    (
        "kernels add",
        &[
            "onset kernels add --name mine --image arch/x86/boot/bzImage --modules root/lib/modules/6.12.8 --headers .",
            "onset kernels add --name mine --replace --image bzImage --modules lib/modules/6.12.8",
        ],
    ),
    (
        "run",
        &[
            "onset run experiments/ladder.toml --set trigger.count=10000 --report report.html",
            "onset run experiments/smoke.toml --set 'flavours=[\"7.3\", \"7.3-rt\"]' --json",
        ],
    ),
    (
        "measure",
        &[
            "onset measure periodic --duration 30s --limit max=100us",
            "onset measure noise --cpus 1 --duration 10s",
        ],
    ),
    (
        "hunt",
        &[
            "onset hunt --flavour 7.3 --load mixed --budget 5min",
            "onset hunt experiments/hunt.toml --flavour '6.12 preempt=none' --responder task --budget 200trials",
        ],
    ),
    (
        "generator",
        &[
            "onset generator --flavour 7.3-rt --load mixed",
            "onset generator --flavour '6.12 preempt=none' --load idle --listen 127.0.0.1:7011 --log triggers.toml",
        ],
    ),
    (
        "live",
        &[
            "onset live 127.0.0.1:7010 --frequency 1kHz",
            "onset live /dev/ttyACM0 --frequency 16Hz --duty 50% --count 10000 --record --csv latencies.csv",
        ],
    ),
    (
        "respond",
        &[
            "onset respond --port parport0 --cpu 1",
            "onset respond --port gpiochip0:17 --answer 27 -- ./my-loop --gain 2",
        ],
    ),
    ("serve", &["onset serve", "onset serve --listen 127.0.0.1:0 --store elsewhere"]),
    ("list", &["onset list", "onset list --store elsewhere --json"]),
    ("show", &["onset show latest", "onset show latest --verify"]),
    (
        "compare",
        &[
            "onset compare 20261125-0801 latest",
            "onset compare before/ after/ --fail-if 'task.p99 > +5%' --fail-if 'hardirq.max > 50us'",
        ],
    ),
    ("report", &["onset report latest", "onset report latest --inside --output inside.html"]),
    (
        "export",
        &[
            "onset export latest --csv > samples.csv",
            "onset export 20261125-0801 --csv --output samples.csv",
        ],
    ),
    (
        "import",
        &[
            "onset import cyclictest.json",
            "onset import histogram.txt --title 'board 7' --limit max=100us",
        ],
    ),
    (
        "explain",
        &[
            "onset explain latest --worst 3",
            "onset explain RUN --series open_close --against OTHER",
        ],
    ),
    ("blame", &["onset blame latest", "onset blame latest --above 50us --responder task"]),
    (
        "replay",
        &[
            "onset replay latest --responder task --trace worst.pftrace",
            "onset replay find.json --times 3",
        ],
    ),
    (
        "windows",
        &[
            "onset windows latest --kind irqs_off --top 5",
            "onset windows experiments/ladder.toml --flavour 6.12-rt --load mixed",
        ],
    ),
    (
        "atlas",
        &[
            "onset atlas",
            "onset atlas --flavour 6.12-rt --stressor mmap --stressor fork --duration 500ms",
        ],
    ),
    ("patch", &["onset patch list", "onset patch prove 6.12 vmalloc-purge"]),
    ("patch list", &["onset patch list", "onset patch list --color never"]),
    (
        "patch build",
        &["onset patch build 6.12", "onset patch build 6.12 vmalloc-purge page-free-bulk"],
    ),
    (
        "patch prove",
        &[
            "onset patch prove 6.12 vmalloc-purge --options preempt=full",
            "onset patch prove 7.3 --load fork --hunt 5min",
        ],
    ),
    (
        "bound",
        &["onset bound latest", "onset bound experiments/ladder.toml --flavour 6.12-rt --json"],
    ),
    (
        "census",
        &[
            "onset census task.find.json --around 100us",
            "onset census latest --responder task --every 100ns --picture census.svg",
        ],
    ),
    (
        "breed",
        &[
            "onset breed --flavour 6.12-rt --responder task --budget 10min",
            "onset breed --flavour 7.3 --corpus onset-runs/bred/of-6.12 --loads 200 --json",
        ],
    ),
    (
        "merge",
        &[
            "onset merge from-a from-b --into hunt",
            "onset merge shard-1 shard-2 shard-3 --into onset-runs",
        ],
    ),
    (
        "minimise",
        &[
            "onset minimise find.json",
            "onset minimise latest --responder task --load --budget 5min",
        ],
    ),
    ("tune", &["onset tune --cpus 2-3", "onset tune --output plan.toml"]),
    (
        "tune apply",
        &[
            "onset tune apply --plan plan.toml --only runtime",
            "onset tune apply --goal 'periodic.max < 200us' --cost 'throughput > -5%'",
        ],
    ),
    (
        "tune prove",
        &[
            "onset tune prove --knob vm.stat_interval=120 --knob kernel.timer_migration=0 --load mixed",
            "onset tune prove --all --screen --flavour '6.12 preempt=none' --hunt 400trials",
        ],
    ),
    ("tune status", &["onset tune status", "onset tune status --unit"]),
    ("tune undo", &["onset tune undo", "onset tune undo --journal /srv/tune"]),
];

/// The whole command line, with examples.
pub fn command() -> Command {
    with_examples(Arguments::command(), "")
}

fn with_examples(mut command: Command, words: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        let words = format!("{words} {name}");
        command = command.mut_subcommand(name, |c| with_examples(c, words.trim_start()));
    }
    let Some(examples) = examples(words) else { return command };
    let examples = format!("Examples:\n  {}", examples.join("\n  "));
    command.after_help(match words {
        "" => format!("{examples}\n\n{EXIT_CODES}"),
        "compare" => format!("{COMPARE_EXIT_CODES}\n\n{examples}"),
        "tune apply" => format!("{APPLY_EXIT_CODES}\n\n{examples}"),
        "tune prove" => format!("{PROVE_EXIT_CODES}\n\n{examples}"),
        "tune undo" => format!("{UNDO_EXIT_CODES}\n\n{examples}"),
        _ => examples,
    })
}

/// The examples of a command by its words, if it has any.
fn examples(words: &str) -> Option<&'static [&'static str]> {
    let probe = words.strip_prefix("measure ");
    let probe = probe.and_then(|name| PROBES.into_iter().find(|probe| probe.name == name));
    let listed = || EXAMPLES.iter().find(|(of, _)| *of == words).map(|(_, examples)| *examples);
    probe.map(|probe| &probe.examples[..]).or_else(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    fn walk(command: &Command, words: &str, see: &mut impl FnMut(&Command, &str)) {
        see(command, words);
        for sub in command.get_subcommands() {
            walk(sub, format!("{words} {}", sub.get_name()).trim_start(), see);
        }
    }

    /// The words of a line, as a shell takes them apart: spaces part, quotation marks keep together.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('\'').enumerate();
        let mut words: Vec<String> = Vec::new();
        for (index, part) in parts {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(String::from)),
                _ => words.push(part.into()),
            }
        }
        words
    }

    #[test]
    fn every_command_has_two_examples_and_each_is_a_command() {
        let mut seen = 0;
        walk(&command(), "", &mut |sub, of| {
            if sub.is_hide_set() {
                return;
            }
            seen += 1;
            let examples = examples(of).unwrap_or_else(|| panic!("{of:?} has no examples"));
            assert_eq!(examples.len(), 2, "{of}");
            for example in examples {
                assert!(example.starts_with(format!("onset {of}").trim_end()), "{example}");
                let line = example.split(" > samples").next().expect("a command");
                let parsed = command().try_get_matches_from(words(line));
                parsed.unwrap_or_else(|e| panic!("{example}: {e}"));
            }
        });
        assert_eq!(seen, EXAMPLES.len() + PROBES.len());
    }

    #[test]
    fn every_option_says_what_is_taken_without_it() {
        let mut silent = Vec::new();
        walk(&command(), "", &mut |sub, of| {
            let takes = |action: &ArgAction| matches!(action, ArgAction::Set | ArgAction::Append);
            for option in sub.get_opts().filter(|option| takes(option.get_action())) {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                // What leaves out, or writes one file more, has nothing that could stand in its place.
                let says = ["[default", "by default", "Only ", "Write "];
                let is_told = !option.get_default_values().is_empty()
                    || option.is_required_set()
                    || says.iter().any(|words| {
                        help.contains(words) || help.contains(&words.replace('b', "B"))
                    });
                if !is_told {
                    silent.push(format!("{of} --{}: {help}", option.get_id()));
                }
            }
        });
        assert!(silent.is_empty(), "{silent:#?}");
    }
}
