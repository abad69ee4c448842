// SPDX-License-Identifier: Apache-2.0

import type { EChartsCoreOption } from 'echarts/core';
import { Component, type ReactNode, Suspense, lazy, useEffect } from 'react';

import { Failure } from './states';

/** Colours of one theme. */
export interface Colors {
  text: string;
  faint: string;
  line: string;
  surface: string;
  /** Distinct for colour-blind eyes too, in the order of use. */
  series: readonly string[];
  neutral: string;
  host: string;
  own: string;
  alarm: string;
}

export interface ChartProps {
  /** What the chart is of, for those who do not see it. */
  label: string;
  height?: number;
  option: (colors: Colors) => EChartsCoreOption;
}

/** Of a chart, in pixels. */
export const HEIGHT = 260;

const load = () => import('./Drawing');
const Drawing = lazy(async () => ({ default: (await load()).Drawing }));

/** Have what draws charts loaded while a view waits for its data. */
export function useCharts(): void {
  useEffect(() => {
    // Its failure is shown where a chart would be.
    load().catch(() => undefined);
  }, []);
}

/** What draws charts may not be loaded: the view is of use without it. */
class Guard extends Component<{ children: ReactNode }, { problem: Error | null }> {
  override state = { problem: null as Error | null };

  static getDerivedStateFromError(problem: Error) {
    return { problem };
  }

  override render() {
    const { problem } = this.state;
    return problem === null ? this.props.children : <Failure error={problem} />;
  }
}

/** A chart; what draws it is larger than all else of a view. */
export function Chart(props: ChartProps) {
  return (
    <Guard>
      <Suspense
        fallback={
          <div
            className="vs-chart vs-loading"
            role="status"
            aria-label="Loading"
            style={{ height: props.height ?? HEIGHT }}
          />
        }
      >
        <Drawing {...props} />
      </Suspense>
    </Guard>
  );
}

export function grid(): object {
  return { left: 56, right: 16, top: 40, bottom: 28 };
}

export function legend(colors: Colors): object {
  return {
    type: 'plain',
    top: 0,
    left: 0,
    itemWidth: 12,
    itemHeight: 8,
    itemGap: 14,
    icon: 'roundRect',
    textStyle: { color: colors.faint, fontSize: 12, width: 180, overflow: 'truncate' },
  };
}

/** A tooltip that is drawn: as HTML it would need inline styles. */
export function tooltip(
  colors: Colors,
  format: (value: number) => string,
): object {
  return {
    trigger: 'axis',
    renderMode: 'richText',
    confine: true,
    backgroundColor: colors.surface,
    borderColor: colors.line,
    textStyle: { color: colors.text, fontSize: 12 },
    axisPointer: { lineStyle: { color: colors.faint, type: 'dotted' } },
    valueFormatter: (value: unknown) =>
      typeof value === 'number' ? format(value) : '–',
  };
}

export function valueAxis(colors: Colors, name: string, more: object = {}): object {
  return {
    type: 'value',
    name,
    nameLocation: 'middle',
    nameGap: 40,
    nameTextStyle: { color: colors.faint },
    axisLabel: { color: colors.faint },
    splitLine: { lineStyle: { color: colors.line } },
    ...more,
  };
}

export function timeAxis(colors: Colors, more: object = {}): object {
  return {
    type: 'time',
    axisLabel: { color: colors.faint, hideOverlap: true },
    axisLine: { lineStyle: { color: colors.line } },
    axisTick: { lineStyle: { color: colors.line } },
    splitLine: { show: false },
    ...more,
  };
}

export function categoryAxis(
  colors: Colors,
  name: string,
  data: readonly string[],
  more: object = {},
): object {
  return {
    type: 'category',
    name,
    nameLocation: 'middle',
    nameGap: 26,
    nameTextStyle: { color: colors.faint },
    data: [...data],
    axisLabel: { color: colors.faint },
    axisLine: { lineStyle: { color: colors.line } },
    axisTick: { show: false },
    ...more,
  };
}
