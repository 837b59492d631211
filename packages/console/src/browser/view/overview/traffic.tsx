import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../../model/failure.ts';
import {
  type MetricsSample,
  readMetrics,
  type TrafficPoint,
  trafficBetween,
} from '../../model/insight/metrics.ts';
import { useApp, useModule } from '../parts/app.ts';

/** The charts come with a library of their own. */
const loadChart = () => import('./chart.tsx');

const periodMs = 2_000;
const pointsMax = 150;

/**
 * Request rates and latencies from the server's own metrics.
 * @param props.objects Number of objects; undefined where none could be counted
 */
export function Traffic(props: { readonly objects: number | undefined }) {
  const { points, message } = usePoints();
  const chart = useModule(loadChart);
  const last = points.at(-1);
  const times = points.map(({ atMs }) => atMs / 1000);
  const series = (of: (point: TrafficPoint) => number | undefined) =>
    points.map((point) => of(point) ?? null);
  return (
    <section class="traffic" aria-label="Traffic">
      <ul class="figures">
        <Figure label="Objects" value={rounded(props.objects)} />
        <Figure label="Requests per second" value={rounded(last?.requestsPerSecond)} />
        <Figure label="Failures per second" value={rounded(last?.failuresPerSecond)} />
        <Figure label="Median latency" value={rounded(last?.medianMs)} unit="ms" />
        <Figure label="99th percentile" value={rounded(last?.p99Ms)} unit="ms" />
        <Figure label="In flight" value={rounded(last?.inFlight)} />
      </ul>
      {message !== '' && <p class="faint">No charts: {message}</p>}
      {message === '' && chart !== undefined && (
        <div class="charts">
          <chart.Chart
            title="Requests per second"
            times={times}
            lines={[
              { label: 'all', color: '--link', values: series((one) => one.requestsPerSecond) },
              { label: 'failed', color: '--bad', values: series((one) => one.failuresPerSecond) },
            ]}
          />
          <chart.Chart
            title="Latency in milliseconds"
            times={times}
            lines={[
              { label: 'median', color: '--good', values: series((one) => one.medianMs) },
              { label: '99th percentile', color: '--warn', values: series((one) => one.p99Ms) },
            ]}
          />
        </div>
      )}
    </section>
  );
}

function Figure(props: { readonly label: string; readonly value: string; readonly unit?: string }) {
  const { label, value, unit } = props;
  return (
    <li class="figure">
      <span class="figure-label">{label}</span>
      <span class="figure-value">
        {value}
        {unit !== undefined && value !== '–' && <small> {unit}</small>}
      </span>
    </li>
  );
}

function rounded(value: number | undefined): string {
  if (value === undefined) return '–';
  return value >= 100 ? value.toFixed(0) : String(Number(value.toFixed(1)));
}

/** Reads the metrics again and again for as long as the page is shown. */
function usePoints(): { readonly points: readonly TrafficPoint[]; readonly message: string } {
  const { api, clock } = useApp();
  const [points, setPoints] = useState<readonly TrafficPoint[]>([]);
  const [message, setMessage] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    let before: MetricsSample | undefined;
    const read = async (): Promise<void> => {
      const { signal } = abort;
      const { text } = await api.send({ path: '/metrics', accept: 'text/plain', signal });
      const sample = readMetrics(text, clock.now());
      const point = before === undefined ? undefined : trafficBetween(before, sample);
      before = sample;
      setMessage('');
      if (point !== undefined) setPoints((all) => [...all, point].slice(-pointsMax));
    };
    let isReading = false;
    const turn = (): void => {
      if (isReading) return;
      isReading = true;
      read()
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setMessage(messageOf(error));
        })
        .then(() => {
          isReading = false;
        });
    };
    turn();
    const timer = clock.every(periodMs, turn);
    return () => {
      timer.stop();
      abort.abort(new Error('closed'));
    };
  }, [api, clock]);
  return { points, message };
}
