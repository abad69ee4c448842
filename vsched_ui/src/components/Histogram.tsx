// SPDX-License-Identifier: Apache-2.0

import { fixed } from '../model/units';

/** One bar of a histogram. */
export interface Bar {
  /** What it counts, as short as an axis has room for. */
  title: string;
  value: number;
}

/**
 * A few bars with their values.
 *
 * They need none of what draws the other charts, which is larger than all
 * else of a view.
 *
 * @param label - what it is of, for those who do not see it.
 * @param axis - what the titles of the bars are of.
 */
export function Histogram({
  label,
  axis,
  bars,
}: {
  label: string;
  axis: string;
  bars: readonly Bar[];
}) {
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  return (
    <div className="vs-histogram" role="img" aria-label={label}>
      <div className="vs-histogram__bars">
        {bars.map(({ title, value }) => (
          <div key={title} className="vs-histogram__bar">
            <div className="vs-histogram__room">
              <div
                className="vs-histogram__filled"
                style={{ height: `${(100 * value) / most}%` }}
              >
                {value > 0 && <span>{fixed(value, 0)}</span>}
              </div>
            </div>
            <span>{title}</span>
          </div>
        ))}
      </div>
      <span>{axis}</span>
    </div>
  );
}
