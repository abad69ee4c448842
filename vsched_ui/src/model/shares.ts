// SPDX-License-Identifier: Apache-2.0

// Arithmetic of reservations. Bandwidth is in milli-CPU (1000 is one CPU),
// shares and errors are in millionths.

export const DEFAULT_PERIOD_US = 20_000;

/** What each vCPU gets of a CPU, in ppm; null without a reservation. */
export function sharePpm(
  runtimeUs: number | null,
  periodUs: number | null,
): number | null {
  if (runtimeUs === null || periodUs === null || periodUs <= 0) {
    return null;
  }
  return Math.round((runtimeUs * 1_000_000) / periodUs);
}

/**
 * What a reservation takes over all vCPUs, in mcpu, rounded up as the service
 * does: rounding never reserves too much.
 */
export function bandwidthMcpu(
  runtimeUs: number,
  periodUs: number,
  vcpus: number,
): number {
  return Math.ceil((runtimeUs * 1000 * vcpus) / periodUs);
}

/** The runtime that gives a share in every period, in whole µs. */
export function runtimeUs(sharePct: number, periodUs: number): number {
  return Math.max(1, Math.round((sharePct * periodUs) / 100));
}

/** (got − reserved) / reserved in ppm; null where nothing is reserved. */
export function errorPpm(gotUs: number, reservedUs: number | null): number | null {
  if (reservedUs === null || reservedUs <= 0) {
    return null;
  }
  return Math.round(((gotUs - reservedUs) * 1_000_000) / reservedUs);
}

/**
 * The largest part of a reservation that can have been withheld, in ppm.
 *
 * An idle instance gets less than is reserved and lacks nothing. What it got
 * too little counts as far as its vCPUs were ready to run and waited.
 */
export function withheldPpm(
  gotUs: number,
  waitedUs: number,
  reservedUs: number | null,
): number | null {
  if (reservedUs === null || reservedUs <= 0) {
    return null;
  }
  const lacking = Math.max(0, reservedUs - gotUs);
  return Math.round((Math.min(lacking, waitedUs) * 1_000_000) / reservedUs);
}

/** The part of a capacity that is in use, in ppm; null without capacity. */
export function usedPpm(
  usedMcpu: number | null,
  capacityMcpu: number | null,
): number | null {
  if (usedMcpu === null || capacityMcpu === null || capacityMcpu <= 0) {
    return null;
  }
  return Math.round((usedMcpu * 1_000_000) / capacityMcpu);
}

/** CPU time of an interval as milli-CPU. */
export function rateMcpu(cpuUs: number, intervalUs: number): number {
  return intervalUs <= 0 ? 0 : (cpuUs * 1000) / intervalUs;
}
