// SPDX-License-Identifier: Apache-2.0

import { useSearchParams } from 'react-router';

/**
 * A choice that the address of the browser keeps.
 *
 * @returns it, empty without one, and what changes it.
 */
export function useAddressed(
  name: string,
): readonly [string, (value: string) => void] {
  const [address, setAddress] = useSearchParams();
  const set = (value: string) =>
    setAddress(
      () => {
        // Not the address as it was shown last: a change may not be shown yet.
        const after = new URLSearchParams(window.location.search);
        if (value === '') {
          after.delete(name);
        } else {
          after.set(name, value);
        }
        return after;
      },
      { replace: true },
    );
  return [address.get(name) ?? '', set];
}
