// SPDX-License-Identifier: Apache-2.0

// Sorting and filtering of rows that are all here.

export type SortValue = string | number | boolean | null | undefined;

export type Direction = 'asc' | 'desc';

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Order two values; what is unknown comes last in both directions. */
export function compare(
  one: SortValue,
  other: SortValue,
  direction: Direction,
): number {
  const missing = (value: SortValue) =>
    value === null || value === undefined || Number.isNaN(value);
  if (missing(one) || missing(other)) {
    return Number(missing(one)) - Number(missing(other));
  }
  const sign = direction === 'asc' ? 1 : -1;
  if (typeof one === 'string' || typeof other === 'string') {
    return sign * collator.compare(String(one), String(other));
  }
  return sign * (Number(one) - Number(other));
}

/** Sort rows without changing them; equal ones keep their order. */
export function sorted<T>(
  rows: readonly T[],
  value: (row: T) => SortValue,
  direction: Direction,
): T[] {
  return rows
    .map((row) => ({ row, value: value(row) }))
    .sort((one, other) => compare(one.value, other.value, direction))
    .map(({ row }) => row);
}

function wordsOf(filter: string): string[] {
  return filter.toLowerCase().split(/\s+/);
}

/** Finds rows by words; the text of each row is made once. */
export class Finder<T extends object> {
  private readonly texts = new WeakMap<T, string>();

  constructor(private readonly text: (row: T) => string) {}

  /** The rows whose text has every word of a filter, in any case. */
  find(rows: readonly T[], filter: string): T[] {
    const words = wordsOf(filter);
    return rows.filter((row) => {
      let text = this.texts.get(row);
      if (text === undefined) {
        text = this.text(row).toLowerCase();
        this.texts.set(row, text);
      }
      return words.every((word) => text.includes(word));
    });
  }
}
