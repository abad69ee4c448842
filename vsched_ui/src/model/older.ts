// SPDX-License-Identifier: Apache-2.0

// Reading older rows of a list whose newest ones are read again meanwhile.

import { ApiError, Unreachable } from '../api/client';

/** What came of a request for older rows. */
export interface Outcome {
  error: Error | null;
  /** How many rows there are in all. */
  rows: number;
}

/** More may be needed only while the list changes all the time. */
const ATTEMPTS = 5;

/**
 * Read older rows.
 *
 * When the list is read again meanwhile, the request is dropped without an
 * error: it is sent again.
 *
 * @param rows - how many there are before.
 * @param more - sends the request.
 * @returns why they could not be read; null if they were.
 */
export async function readOlder(
  rows: number,
  more: () => Promise<Outcome>,
): Promise<Error | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const outcome = await more();
    if (outcome.rows > rows) {
      return null;
    }
    if (outcome.error !== null) {
      return outcome.error;
    }
  }
  return new Error('newer rows came in each time');
}

/** Why something could not be read, in plain words, and the code of that. */
export function reasonOf(error: Error): { text: string; code: string } {
  return {
    text: error instanceof Unreachable ? 'there was no answer' : error.message,
    code: error instanceof ApiError ? error.code : '',
  };
}
