/**
 * Counters, gauges and histograms, and their text as Prometheus reads it. A series is found once by
 * its labels and then kept by who counts, so that counting is an addition.
 */
export type Stability = 'ALPHA' | 'BETA' | 'STABLE';

export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly stability: Stability;
  readonly labels: readonly string[];
  /** The release it is deprecated from, as `1.29`. */
  readonly deprecatedFrom?: string;
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, rising; the infinite one is added. */
  readonly buckets: readonly number[];
}

export interface Counter {
  add(by: number): void;
}

export interface Gauge {
  set(value: number): void;
  add(by: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

/** The series of one metric. */
export interface Family<Series> {
  /** The series of these label values, in the order of the definition's labels. */
  of(...values: readonly string[]): Series;
  /** Forgets all series: for gauges that are filled anew at each look. */
  clear(): void;
}

export interface MetricRegistry {
  counter(definition: MetricDefinition): Family<Counter>;
  gauge(definition: MetricDefinition): Family<Gauge>;
  histogram(definition: HistogramDefinition): Family<Histogram>;
  /** All metrics in the text format, version 0.0.4, in order of their names. */
  render(): string;
}

/** Series of one metric; what comes above is counted nowhere: label values may be a client's. */
const seriesMax = 20_000;
/** Releases after which a deprecated metric is no longer shown by itself (VER-6). */
const shownReleases = 3;

/**
 * An empty registry. `release` (`1.32`) decides which deprecated metrics are hidden, unless `hidden`
 * says to show them; `onDeprecated` hears of each deprecated one that is shown.
 */
export function createMetricRegistry(options: {
  readonly release: string;
  readonly hidden: 'hidden' | 'shown';
  readonly onDeprecated?: (metric: { readonly name: string; readonly from: string }) => void;
}): MetricRegistry {
  const shown = new Map<string, { lines(): string }>();
  const register = <Series extends Rendered>(
    definition: MetricDefinition,
    parts: { readonly type: string; readonly create: () => Series },
  ): Family<Series> => {
    const { name, deprecatedFrom: from } = definition;
    if (shown.has(name)) throw new Error(`the metric ${name} is there already`);
    const family = createFamily(definition, parts);
    const age = from === undefined ? 0 : minorOf(options.release) - minorOf(from);
    if (age >= shownReleases && options.hidden === 'hidden') return family;
    if (from !== undefined && age >= 0) options.onDeprecated?.({ name, from });
    shown.set(name, family);
    return family;
  };
  return {
    counter: (definition) => register(definition, { type: 'counter', create: createValue }),
    gauge: (definition) => register(definition, { type: 'gauge', create: createValue }),
    histogram: (definition) =>
      register(definition, {
        type: 'histogram',
        create: () => createHistogram(definition.buckets),
      }),
    render() {
      const names = [...shown.keys()].sort();
      return names.map((name) => shown.get(name)?.lines() ?? '').join('');
    },
  };
}

function minorOf(release: string): number {
  return Number(release.split('.')[1]);
}

/** What a series adds to the text: suffix of the name, more labels, value. */
interface Rendered {
  samples(): readonly (readonly [suffix: string, labels: string, value: number])[];
}

function createFamily<Series extends Rendered>(
  definition: MetricDefinition,
  { type, create }: { readonly type: string; readonly create: () => Series },
): Family<Series> & { lines(): string } {
  const { name, labels } = definition;
  const series = new Map<string, { readonly labels: string; readonly series: Series }>();
  return {
    of(...values) {
      const key = values.join('\0');
      const known = series.get(key);
      if (known !== undefined) return known.series;
      const made = create();
      if (series.size < seriesMax) {
        const text = labels.map((label, index) => `${label}="${escapeLabel(values[index] ?? '')}"`);
        series.set(key, { labels: text.join(','), series: made });
      }
      return made;
    },
    clear: () => series.clear(),
    lines() {
      if (series.size === 0) return '';
      const lines = [`# HELP ${name} ${helpOf(definition)}\n`, `# TYPE ${name} ${type}\n`];
      for (const one of series.values()) {
        for (const [suffix, more, value] of one.series.samples()) {
          const all = [one.labels, more].filter((part) => part !== '').join(',');
          lines.push(`${name}${suffix}${all === '' ? '' : `{${all}}`} ${formatNumber(value)}\n`);
        }
      }
      return lines.join('');
    },
  };
}

function helpOf({ stability, deprecatedFrom, help }: MetricDefinition): string {
  const note = deprecatedFrom === undefined ? '' : `(Deprecated from ${deprecatedFrom}) `;
  return `[${stability}] ${note}${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function formatNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

function createValue(): Counter & Gauge & Rendered {
  let value = 0;
  return {
    add: (by) => {
      value += by;
    },
    set: (to) => {
      value = to;
    },
    samples: () => [['', '', value]],
  };
}

function createHistogram(buckets: readonly number[]): Histogram & Rendered {
  const counts = new Float64Array(buckets.length + 1);
  const last = buckets.length;
  let sum = 0;
  return {
    observe(value) {
      let at = 0;
      while (at < last && value > (buckets[at] as number)) at += 1;
      counts[at] = (counts[at] as number) + 1;
      sum += value;
    },
    samples() {
      let total = 0;
      const samples: [string, string, number][] = [];
      counts.forEach((count, index) => {
        total += count;
        const bound = formatNumber(buckets[index] ?? Number.POSITIVE_INFINITY);
        samples.push(['_bucket', `le="${bound}"`, total]);
      });
      return [...samples, ['_sum', '', sum], ['_count', '', total]];
    },
  };
}
