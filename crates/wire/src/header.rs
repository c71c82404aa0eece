// SPDX-License-Identifier: GPL-2.0-or-later
//! `driver/onset_wire.h`: what the driver, which is C, needs of this crate. A test compares that file with what this
//! module makes; the example `header` prints it.
//!
//! Prose is not generated: `driver/onset_port.h` says what a device does.

use crate::encoding::{LOSS, SAMPLE};
use crate::ports;
use alloc::format;
use alloc::string::String;
use sample::{ALL_RESPONDERS, Disturbance, Loss, ResponderSet};

/// The losses of a driver, which is never kept from measuring: an [`Loss::Overrun`] is a probe's.
const LOSSES: [(Loss, &str); 5] = [
    (Loss::Unanswered, "UNANSWERED"),
    (Loss::Superseded, "SUPERSEDED"),
    (Loss::Spurious, "SPURIOUS"),
    (Loss::Tainted, "TAINTED"),
    (Loss::Dropped, "DROPPED"),
];

/// The header's text.
pub fn c_header() -> String {
    let mut text = String::from(HEAD);
    text +=
        "/* The responders, each numbered by the pin that it toggles. */\nenum onset_responder {\n";
    for responder in ALL_RESPONDERS {
        let name = responder.name().to_uppercase();
        text += &format!("\tONSET_{name} = {},\n", responder.pin());
    }
    text += "\tONSET_RESPONDERS\n};\n\n";
    text += "/* So many data pins has a parallel port; the responders from this number on have none. */\n";
    text += &format!("#define ONSET_DATA_PINS\t{}\n\n", ResponderSet::OF_PORT.mask().count_ones());
    text += "/* What a record reports. */\nenum onset_kind {\n";
    text += &format!("\t/* The latency of one answer. */\n\tONSET_SAMPLE = {SAMPLE},\n");
    text += "\t/* Triggers that gave no sample, since the last such record. */\n";
    text += &format!("\tONSET_LOSS = {LOSS},\n}};\n\n");
    text += "/* Why a trigger gave no sample. */\nenum onset_loss {\n";
    for (loss, name) in LOSSES {
        text += &format!("\tONSET_{name} = {},\n", loss as u8);
    }
    text += "\tONSET_LOSSES\n};\n\n";
    text += RECORD;
    let define = |name: &str, value: String| format!("#define ONSET_{name}\t{value}\n");
    let request = |number: u8| format!("_IO('{}', {number:#x})", char::from(ports::IOCTL));
    text += "/* The parallel port of the rig, and of most machines that have one. */\n";
    text += &define("PORT", format!("{:#x}", ports::PARALLEL));
    text += &define("PORT_IRQ", format!("{}", ports::PARALLEL_IRQ));
    text +=
        "\n/* The label of the rig's GPIO chip, which is that port and the register below. */\n";
    text += &define("CHIP", format!("{:?}", ports::CHIP));
    text += "\n/* The rig has a second data register, for the pins from ONSET_DATA_PINS on. */\n";
    text += &define("HIGHER_PORT", format!("{:#x}", ports::HIGHER));
    text += "\n/* Where the rig says that it is there, and as what this reads. */\n";
    text += &define("MARK_PORT", format!("{:#x}", ports::MARK));
    text += &define("PRESENT", format!("{:#x}", ports::PRESENT));
    text +=
        "\n/* The device that disturbs: its register, and the most timers that it asks for. */\n";
    text += &define("DISTURBANCE_PORT", format!("{:#x}", ports::DISTURBANCE));
    text += &define("DISTURBANCE_TIMERS", format!("{}", Disturbance::TIMERS_MAX));
    text += "\n/* The driver's devices, and what they are asked. */\n";
    text += &define("DEVICE", format!("{:?}", ports::DEVICE));
    text += &define("SAMPLES", format!("{:?}", ports::SAMPLES));
    text += &define("ANSWER", request(ports::ANSWER));
    text += &define("STOP", request(ports::STOP));
    text += "\n#endif /* ONSET_WIRE_H */\n";
    text
}

const HEAD: &str = "\
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers and layouts that the driver shares with the rest of onset. Made by
 * cargo run -p onset-wire --example header >driver/onset_wire.h
 * from crates/wire; what is changed here by hand fails a test there.
 */
#ifndef ONSET_WIRE_H
#define ONSET_WIRE_H

#include <linux/ioctl.h>
#include <linux/types.h>

";

/// [`crate::Reading`] as `encoding.rs` writes it. That both are the same is tried with a C compiler.
const RECORD: &str = "\
/* 32 bytes, little endian. */
struct onset_record {
	__u8 kind;		/* enum onset_kind */
	__u8 loss;		/* enum onset_loss; 0 for a sample */
	__le16 reserved;	/* 0 */
	__le32 pin;		/* whose: the number of the responder */
	__le64 number;		/* of the trigger, from 0; of a loss how many */
	__le64 due_ns;		/* CLOCK_MONOTONIC; 0 for a loss */
	__le64 latency_ns;	/* from then to the answer; 0 for a loss */
};

";
