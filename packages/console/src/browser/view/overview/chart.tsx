import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { useApp } from '../parts/app.ts';

/** A series of a chart. */
interface ChartLine {
  readonly label: string;
  /** A color variable of the style sheet. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

const height = 150;

/**
 * A line chart, hidden from screen readers, since the page also shows the latest values as text.
 */
export function Chart(props: {
  readonly title: string;
  /** Unix time in seconds. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}) {
  const { title, times, lines } = props;
  const { theme } = useApp();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  // Rebuilds the chart only if the colors change.
  useEffect(() => {
    const { current: box } = place;
    if (box === null) return;
    const chart = new UPlot(optionsFor(box, lines), [[], ...lines.map(() => [])], box);
    plot.current = chart;
    const observer = new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [theme]);
  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])]);
  }, [times, lines]);
  return (
    <figure class="chart">
      <figcaption>
        {title}
        {lines.map(({ label }, index) => (
          <span key={label} class={`legend legend-${index}`} data-line={lines[index]?.color}>
            {label}
          </span>
        ))}
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

function optionsFor(box: HTMLElement, lines: readonly ChartLine[]): UPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string): string => {
    // A canvas does not resolve CSS variables; a color property does.
    box.style.outlineColor = `var(${name})`;
    const resolved = style.outlineColor;
    box.style.outlineColor = '';
    return resolved;
  };
  const axis = {
    stroke: color('--faint'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  return {
    width: box.clientWidth || 300,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false } },
    scales: {
      x: { range: timeRange },
      y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] },
    },
    axes: [axis, { ...axis, size: 46 }],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 2,
        points: { show: false },
        spanGaps: true,
      })),
    ],
  };
}

/** At least a minute, since the library's range around a single sample spans years. */
function timeRange(plot: UPlot, low: number, high: number): [number, number] {
  const [times] = plot.data;
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) return [low, high];
  return [Math.min(first, last - 60), last];
}
