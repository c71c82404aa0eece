// SPDX-License-Identifier: GPL-2.0-or-later
// What the server tells of a live generator (crates/serve/src/live.rs; test/told.json is an example that both test).

/** Edges of a live generator (crates/serve/src/edges.rs). */
export interface EdgesTold {
  readonly number: number;
  readonly pins: readonly string[];
  readonly edges: string;
  readonly left_out: number;
}

/** How a conversation with a generator stands. */
export type Standing = "idle" | "connecting" | "running" | "stopping" | "ended" | "failed";

export interface Told {
  readonly standing: Standing;
  readonly message: string | null;
  readonly generator: string;
  readonly clock: string | null;
  readonly triggers: number;
  readonly measured_ns: number;
  readonly period_ns: number | null;
  readonly high_ns: number | null;
  readonly damaged_frames: number;
  /** How the generator's clock goes beside the server's; null of virtual time, and where that is not known yet. */
  readonly drift: Drift | null;
  readonly bundle: string | null;
  /** The last notes of the user. */
  readonly marks: readonly { readonly at_ns: number; readonly triggers: number; readonly note: string }[];
  readonly channels: readonly Channel[];
  /** The edges since pages were told before; null while no run goes on. */
  readonly edges: EdgesTold | null;
}

export interface Drift {
  readonly gain_ppb: number;
  readonly uncertainty_ppb: number;
  readonly started_ns: number;
  readonly span_ns: number;
  readonly batches: number;
  /** Whether crystals are not so far off, for sure. */
  readonly is_doubtful: boolean;
}

export interface Channel {
  readonly summary: {
    readonly responder: string;
    readonly count: number;
    readonly losses: Readonly<Record<string, number>>;
    readonly min_ns: number | null;
    readonly mean_ns: number | null;
    readonly max_ns: number | null;
    readonly quantiles: Readonly<Record<string, number>>;
  };
  readonly columns: readonly { readonly low_ns: number; readonly high_ns: number; readonly count: number }[];
  readonly slices: readonly {
    readonly at_ns: number;
    readonly width_ns: number;
    readonly min_ns: number;
    readonly max_ns: number;
    readonly count: number;
  }[];  /** The worst answers, the worst first. */
  readonly worst: readonly { readonly trigger: number; readonly at_ns: number; readonly latency_ns: number }[];
}
