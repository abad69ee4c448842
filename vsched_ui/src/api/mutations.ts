// SPDX-License-Identifier: Apache-2.0

// Changes of what the API has, and what they mean for what is shown of it.

import {
  type QueryClient,
  type QueryKey,
  type UseMutationOptions,
  type UseMutationResult,
  useMutation,
  useQueryClient,
} from '@tanstack/react-query';

import { ApiError } from './client';

/** A request that changes something. */
export interface Change<V, D> {
  /** Send it. */
  send: (given: V) => Promise<D>;
  /** The keys of what it changes. */
  keys: readonly QueryKey[];
  /** Show what it was answered with; without it, that is read again. */
  show?: (cache: QueryClient, answer: D) => unknown;
  /** What follows once it is shown. */
  done?: () => unknown;
}

/**
 * The options of a mutation that makes a change.
 *
 * Polls may be under way when the change is answered, with answers from
 * before it. They are dropped, so that what is shown after the change has it.
 */
export function changeOptions<V, D>(
  cache: QueryClient,
  { send, keys, show, done }: Change<V, D>,
): UseMutationOptions<D, Error, V> {
  const readAgain = async () => {
    // One that was never answered would otherwise not be sent again.
    await dropPolls(cache, keys);
    await Promise.all(
      keys.map((queryKey) => cache.invalidateQueries({ queryKey })),
    );
  };
  return {
    mutationFn: send,
    onSuccess: async (answer) => {
      if (show === undefined) {
        await readAgain();
      } else {
        await dropPolls(cache, keys);
        await show(cache, answer);
      }
      done?.();
    },
    // It is not as it was shown: what it is now says what the error means.
    onError: (error) => {
      const reading = readAgain();
      // Without an answer to the change, that may take long as well.
      return error instanceof ApiError ? reading : undefined;
    },
  };
}

/** What each request that changes something is sent by. */
export function useChange<V = void, D = unknown>(
  change: Change<V, D>,
): UseMutationResult<D, Error, V> {
  return useMutation(changeOptions(useQueryClient(), change));
}

/** Drop what was asked for below some keys and is not answered yet. */
export async function dropPolls(
  cache: QueryClient,
  keys: readonly QueryKey[],
): Promise<void> {
  await Promise.all(
    keys.map((queryKey) => cache.cancelQueries({ queryKey })),
  );
}
