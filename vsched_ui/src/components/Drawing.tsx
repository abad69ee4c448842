// SPDX-License-Identifier: Apache-2.0

import { BarChart, LineChart } from 'echarts/charts';
import {
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import { type EChartsCoreOption, init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { useEffect, useRef } from 'react';

import { useDark } from '../app/theme';
import { type ChartProps, type Colors, HEIGHT } from './Chart';

use([
  BarChart,
  CanvasRenderer,
  GridComponent,
  LegendComponent,
  LineChart,
  MarkLineComponent,
  TooltipComponent,
]);

const LIGHT: Colors = {
  text: '#1f2328',
  faint: '#57606a',
  line: '#d8dee4',
  surface: '#ffffff',
  series: [
    '#0b62b0',
    '#d5741c',
    '#148060',
    '#8a3f8f',
    '#a88100',
    '#3ba3c7',
    '#a33b50',
    '#5d6ab8',
    '#6f8f2f',
    '#8c5a3c',
  ],
  neutral: '#aeb8c2',
  host: '#7d8894',
  own: '#c3ccd5',
  alarm: '#b1242f',
};

const DARK: Colors = {
  text: '#f0f3f6',
  faint: '#a8b2bd',
  line: '#3a4149',
  surface: '#1b1f24',
  series: [
    '#6cb2f2',
    '#f0a35e',
    '#5fcba3',
    '#d398d8',
    '#e2c455',
    '#8fdcf0',
    '#f08ca0',
    '#a9b4f5',
    '#b5d16f',
    '#d1a586',
  ],
  neutral: '#67727e',
  host: '#8d99a6',
  own: '#4f5963',
  alarm: '#ff8a84',
};

/** A chart; it follows its data, its size and the theme. */
export function Drawing({ label, height = HEIGHT, option }: ChartProps) {
  const dark = useDark();
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ReturnType<typeof init> | null>(null);

  useEffect(() => {
    if (place.current === null) {
      return;
    }
    const made = init(place.current, null, { renderer: 'canvas' });
    chart.current = made;
    const sizes = new ResizeObserver(() => made.resize());
    sizes.observe(place.current);
    return () => {
      sizes.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    const colors = dark ? DARK : LIGHT;
    chart.current?.setOption(
      { ...base(colors), ...option(colors) },
      { notMerge: true, lazyUpdate: true },
    );
  }, [option, dark]);

  return (
    <div
      ref={place}
      className="vs-chart"
      role="img"
      aria-label={label}
      style={{ height }}
    />
  );
}

function base(colors: Colors): EChartsCoreOption {
  return {
    animation: false,
    color: [...colors.series],
    textStyle: {
      color: colors.text,
      // A canvas inherits none.
      fontFamily: window.getComputedStyle(document.body).fontFamily,
      fontSize: 12,
    },
  };
}

