// SPDX-License-Identifier: GPL-2.0-or-later
//! Every command of docs/recipes.md is run as it stands there, one recipe after the other, with what the reader is said
//! to have.

use std::fs;
use std::path::Path;
use std::process::Command;
use testbench::{Finished, Lab, have_kernels, onset};

const RECIPES: &str = include_str!("../../docs/recipes.md");

/// What rt-tests 2.4 wrote and printed, shortened.
const JSON: &str = r##"{ "file_version": 1, "cmdline:": "cyclictest -q -h 60", "rt_test_version:": "2.40",
  "sysinfo": { "release": "6.18.4", "version": "#1 SMP" }, "num_threads": 1, "resolution_in_ns": 0,
  "thread": { "0": { "histogram": { "58": 6, "59": 18 }, "cycles": 25, "min": 58, "max": 3689, "avg": 86.6, "cpu": 0, "node": 0 } } }"##;
const HISTOGRAM: &str = "# Histogram\n000009 000005\n000024 000001\n# Total: 000000006\n# Min Latencies: 00009\n\
    # Avg Latencies: 00012\n# Max Latencies: 00024\n# Histogram Overflows: 00000\n";

/// A driver that keeps interrupts off for 300 µs, each 20 ms.
const DRIVER: &str = r#"// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/timer.h>

static void slow_part(struct timer_list *timer)
{
	unsigned long flags;

	local_irq_save(flags);
	udelay(300);
	local_irq_restore(flags);
	mod_timer(timer, jiffies + msecs_to_jiffies(20));
}

static DEFINE_TIMER(timer, slow_part);

static int __init my_driver_init(void)
{
	mod_timer(&timer, jiffies + 1);
	return 0;
}
module_init(my_driver_init);
MODULE_DESCRIPTION("keeps interrupts off");
MODULE_LICENSE("GPL");
"#;

/// The blocks of shell commands, each with its recipe's heading.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let recipes = RECIPES.split("\n## ").skip(1);
    let of = |recipe: &'static str| {
        let heading = recipe.lines().next().expect("a heading");
        let blocks = recipe.split("```sh\n").skip(1);
        blocks.map(move |rest| (heading, rest.split("```").next().expect("an end")))
    };
    recipes.flat_map(of).collect()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("coreutils").success(), "{}", from.display());
}

/// A tree in which a kernel was built: here the headers, the image and the modules of one that was fetched.
fn tree(lab: &Lab) {
    let kernel = lab.cache().join("kernels/6.12");
    let record = fs::read_to_string(kernel.join("kernel.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let headers = record["headers"].as_str().expect("it has headers");
    copy(&kernel.join("headers"), &lab.path().join("headers"));
    fs::rename(lab.path().join(headers), lab.path().join("headers/usr/src/linux"))
        .expect("writable");
    std::os::unix::fs::symlink("headers/usr/src/linux", lab.path().join("linux"))
        .expect("writable");
    let boot = lab.path().join("linux/arch/x86/boot");
    fs::create_dir_all(&boot).expect("writable");
    copy(&kernel.join("vmlinuz"), &boot.join("bzImage"));
    copy(&kernel.join("root"), &lab.path().join("linux/root"));
}

#[test]
fn every_recipe_runs_as_it_stands_in_the_documentation() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    // A cache of its own: one of the recipes adds a kernel.
    let (lab, shared) = (Lab::bare(), Lab::new());
    let kernels = lab.cache().join("kernels");
    fs::create_dir(&kernels).expect("writable");
    copy(
        &fs::canonicalize(shared.cache().join("kernels/6.12")).expect("a kernel"),
        &kernels.join("6.12"),
    );
    tree(&lab);
    lab.write("my-driver/my_driver.c", DRIVER);
    lab.write(
        "my-driver/Kbuild",
        "# SPDX-License-Identifier: GPL-2.0-or-later\nobj-m := my_driver.o\n",
    );
    lab.write("old.json", JSON);
    lab.write("older.txt", HISTOGRAM);
    let bin = lab.path().join("bin");
    fs::create_dir(&bin).expect("writable");
    std::os::unix::fs::symlink(onset(), bin.join("onset")).expect("writable");
    let blocks = blocks();
    assert_eq!(blocks.len(), 7);
    let mut said = String::new();
    for (heading, block) in blocks {
        let mut command = Command::new("sh");
        command.args(["-euc", block]).current_dir(lab.path());
        command.env("PATH", lab.with_bin()).env("XDG_CACHE_HOME", lab.path().join("cache"));
        command.env_remove("ONSET").env_remove("ONSET_STORE");
        let finished = Finished::of(&mut command);
        assert_eq!(
            finished.status,
            Some(0),
            "{heading}\n{block}\n{}\n{}",
            finished.stdout,
            finished.stderr
        );
        said += &finished.stdout;
    }
    // They do what they are there for.
    assert!(said.contains("slow_part") && said.contains("[my_driver]"), "{said}");
    assert!(said.contains("The samples are identical."), "{said}");
    assert!(said.contains("mine preempt=none"), "{said}");
    for file in ["mine.html", "old.html", "samples.csv", "histogram.dat"] {
        assert!(fs::metadata(lab.path().join(file)).is_ok_and(|m| m.len() > 0), "{file}");
    }
}
