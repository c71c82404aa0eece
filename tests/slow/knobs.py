# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the table of knobs with what guests of several kernels have.

usage: knobs.py patterns KNOBS | parameters KNOBS | compare KNOBS DIRECTORY FLAVOUR...

KNOBS is the directory of the knobs' files. `patterns` prints each knob's files, `parameters` the names of the boot parameters,
as the guest gets them. `compare` reads of each flavour DIRECTORY/FLAVOUR.seen (what onset and the guest said),
FLAVOUR.booted (what the kernel said of the boot parameters) and FLAVOUR.config. Prints a table: how many knobs each kernel
has, and those that not all have. Exits with 1 where the data and a kernel do not agree:
  - a file, thread or boot parameter is there, and onset says that the kernel lacks it, or has not read it;
  - some kernels have it, another one has not, and the data (from, until, option) do not say why.
"""

import fnmatch
import json
import pathlib
import re
import sys
import tomllib


def knobs(directory):
    """All knobs, each as its table of TOML."""
    files = sorted(pathlib.Path(directory).glob("*.toml"))
    return [knob for file in files for knob in tomllib.loads(file.read_text())["knob"]]


def patterns(knob):
    """The files or threads of a knob, where CPU 1 is measured."""
    return [path.replace("{measured}", "1") for path in knob.get("paths", [])]


# Values that the kernel takes, of parameters that it calls unknown with any other value.
VALUES = {"mce": "off", "transparent_hugepage": "never", "numa_balancing": "disable", "rseq_slice_ext": "off", "sched_proxy_exec": "off"}


def parameter(knob):
    """A boot parameter with a value: the proposed one, where CPU 1 of two is measured, or one that means nothing."""
    value = VALUES.get(knob["name"]) or knob.get("proposes", "onset")
    value = value.replace("{measured}", "1").replace("{housekeeping}", "0")
    return knob["name"] if knob.get("flag") else f"{knob['name']}={value}"


def is_asked_of_kernel(knob):
    """Whether the kernel says that it does not know this boot parameter: it is silent about names with a point."""
    return knob["kind"] == "boot" and "." not in knob["name"]


def has(knob, said):
    """Whether the guest has a knob; None for what it cannot tell."""
    if knob["kind"] == "boot":
        return knob["name"] not in said["unknown"] if is_asked_of_kernel(knob) else None
    if knob["kind"] == "priority":
        return any(fnmatch.fnmatchcase(thread, pattern) for pattern in patterns(knob) for thread in said["threads"])
    return knob["name"] in said["files"] if knob.get("paths") else None


def says(directory, flavour):
    """What was said of a kernel: its configuration, onset's plan, the files, threads and unknown parameters."""
    text = (directory / f"{flavour}.seen").read_text()
    booted = (directory / f"{flavour}.booted").read_text()
    for part in (text, booted):
        if "@end" not in part:
            sys.exit(f"knobs.py: the guest of {flavour} did not come to its end")
    plan = json.loads(text[: text.index("\n@")])
    of = lambda word, part: re.findall(rf"^@{word} (.*)$", part, re.M)
    unknown = [word.split("=")[0] for line in of("unknown", booted) for word in line.split()]
    return {
        "plan": {knob["name"]: knob for knob in plan["knobs"]},
        "files": {line.split()[0] for line in of("has", text)},
        "threads": of("thread", text),
        "unknown": [word.replace("-", "_") for word in unknown],
    }


def judge(knob, said):
    """A letter for each kernel: + it has the knob, - it has not; and what is wrong with the data."""
    row, faults = [], []
    there = {flavour: has(knob, each) for flavour, each in said.items()}
    for flavour, each in said.items():
        seen = each["plan"][knob["name"]]
        missing = seen["missing"]
        by_data = missing and re.search("later have it|was the last to have it|was built with|no kernel thread is called", missing)
        name = f"{knob['name']} on {flavour}"
        if there[flavour] and missing:
            faults.append(f"{name}: it is there, and onset says: {missing}")
        if there[flavour] is False and knob["kind"] == "boot" and not by_data:
            faults.append(f"{name}: the kernel does not know it, and the data do not say so")
        if there[flavour] is False and any(there.values()) and not by_data and knob["kind"] != "told":
            faults.append(f"{name}: other kernels have it, and the data do not say why this one has not: {missing}")
        is_here = not missing if knob["kind"] != "told" else there[flavour] is not False
        row.append("+" if is_here else "-")
    return "".join(row), sorted(set(faults))


def compare(table, directory, flavours):
    said = {flavour: says(directory, flavour) for flavour in flavours}
    judged = [(knob, *judge(knob, said)) for knob in table]
    print("| knob |", " | ".join(flavours), "|")
    print("|---" * (len(flavours) + 1) + "|")
    counts = [str(sum(row[at] == "+" for _, row, _ in judged)) for at in range(len(flavours))]
    print(f"| all {len(table)} |", " | ".join(counts), "|")
    for knob, row, _ in judged:
        if len(set(row)) > 1:
            print(f"| `{knob['name']}` |", " | ".join("yes" if mark == "+" else "" for mark in row), "|")
    nowhere = [f"`{knob['name']}`" for knob, row, _ in judged if set(row) == {"-"}]
    print(f"\nIn none of these guests: {', '.join(nowhere) or 'none'}.")
    untold = sum(has(knob, said[flavours[0]]) is None for knob in table)
    print(f"By onset's word alone (names with a point, and what has no file): {untold}.")
    faults = [fault for _, _, each in judged for fault in each]
    for fault in faults:
        print("FAULT", fault)
    return 1 if faults else 0


def main(what, table, *rest):
    table = knobs(table)
    if what == "patterns":
        for knob in table:
            for pattern in patterns(knob) if knob["kind"] != "priority" else []:
                print(knob["name"], pattern)
    elif what == "parameters":
        print(" ".join(parameter(knob) for knob in table if is_asked_of_kernel(knob)))
    else:
        sys.exit(compare(table, pathlib.Path(rest[0]), rest[1:]))


main(*sys.argv[1:])
