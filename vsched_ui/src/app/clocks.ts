// SPDX-License-Identifier: Apache-2.0

// Clocks that tick for all parts of the page at once.

/** What knows the time of the server, in ms since the epoch. */
export interface Source {
  serverNow: () => number;
}

/** A clock with listeners; it runs while it has any. */
export interface Clock {
  /** Call a function at each tick; returns how to stop. */
  subscribe: (listener: () => void) => () => void;
  /** The time of the last tick, in ms since the epoch. */
  now: () => number;
}

const clocks = new WeakMap<Source, Map<number, Clock>>();

/** The clock of a server that ticks so often: always the same one. */
export function clockOf(source: Source, everyMs: number): Clock {
  let known = clocks.get(source);
  if (known === undefined) {
    known = new Map();
    clocks.set(source, known);
  }
  let clock = known.get(everyMs);
  if (clock === undefined) {
    clock = made(source, everyMs);
    known.set(everyMs, clock);
  }
  return clock;
}

function made(source: Source, everyMs: number): Clock {
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let now = source.serverNow();
  return {
    subscribe: (listener) => {
      listeners.add(listener);
      timer ??= setInterval(() => {
        now = source.serverNow();
        for (const one of listeners) {
          one();
        }
      }, everyMs);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
    now: () => {
      // One that nothing listens to has stopped.
      if (timer === undefined && source.serverNow() - now >= everyMs) {
        now = source.serverNow();
      }
      return now;
    },
  };
}
