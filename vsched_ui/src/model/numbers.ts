// SPDX-License-Identifier: Apache-2.0

// Numbers that users type.

/** A number from a field; null when it holds none. */
export function number(text: string): number | null {
  const found = text.trim();
  if (found === '' || !/^[0-9]*\.?[0-9]+$/.test(found)) {
    return null;
  }
  return Number(found);
}
