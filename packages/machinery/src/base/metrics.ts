import { itemAt } from './lists.ts';
import { goFloat } from './numbers.ts';

/** Quantiles of recent observations. */
export interface Summary {
  /** `atMs` is the time of the observation, on the clock of the definition. */
  observe(value: number, atMs: number): void;
}

/** Smaller values count as `smallest`, larger ones as `largest`. */
const smallest = 1e-6;
const largest = 1e3;
/** Adjacent classes differ by 2 %, so quantiles are accurate to 1 %. */
const growth = Math.log(1.02);
const classes = Math.ceil(Math.log(largest / smallest) / growth) + 1;
/** Number of parts of the window, by which it advances. */
const parts = 5;

/**
 * A series of a summary. Values are counted in logarithmic classes, separately for each fifth of
 * the window, so an observation is one addition and memory is bounded.
 *
 * Example with `maxAgeMs` of 5 h: at 7:30 the parts are those started at 3, 4, 5, 6, and 7. A value
 * of 0.01 s adds 1 to class 466 of the last one. At 8:00 the part started at 3 is cleared and
 * reused.
 */
function createSummary(options: {
  readonly quantiles: readonly number[];
  readonly maxAgeMs: number;
  readonly now: () => number;
}): Summary & { samples(): readonly (readonly [suffix: string, labels: string, value: number])[] } {
  const partMs = options.maxAgeMs / parts;
  const counts = Array.from({ length: parts }, () => new Uint32Array(classes));
  let currentPart = Math.floor(options.now() / partMs);
  let current = itemAt(counts, currentPart % parts);
  let sum = 0;
  let total = 0;
  const advanceTo = (atMs: number) => {
    const newPart = Math.floor(atMs / partMs);
    const passed = Math.min(newPart - currentPart, parts);
    for (let step = 0; step < passed; step += 1) counts[(newPart - step) % parts]?.fill(0);
    currentPart = Math.max(currentPart, newPart);
    current = itemAt(counts, currentPart % parts);
  };
  return {
    observe(value, atMs) {
      if (atMs >= (currentPart + 1) * partMs) advanceTo(atMs);
      const at = classOf(value);
      current[at] = (current[at] ?? 0) + 1;
      sum += value;
      total += 1;
    },
    samples() {
      advanceTo(options.now());
      const quantiles = options.quantiles.map(
        (quantile) => ['', `quantile="${quantile}"`, quantileOf(counts, quantile)] as const,
      );
      return [...quantiles, ['_sum', '', sum], ['_count', '', total]];
    },
  };
}

function classOf(value: number): number {
  if (value <= smallest) return 0;
  return Math.min(classes - 1, Math.round(Math.log(value / smallest) / growth));
}

function quantileOf(counts: readonly Uint32Array[], quantile: number): number {
  const sums = new Float64Array(classes);
  let all = 0;
  for (const part of counts) {
    part.forEach((count, at) => {
      sums[at] = (sums[at] ?? 0) + count;
      all += count;
    });
  }
  if (all === 0) return Number.NaN;
  let seen = 0;
  const at = sums.findIndex((count) => {
    seen += count;
    return count > 0 && seen >= quantile * all;
  });
  return smallest * Math.exp(at * growth);
}

/** Stability of a metric, as its help text states it. */
export type Stability = 'ALPHA' | 'BETA' | 'STABLE';

/** Whether the help text starts with the stability, which kube-apiserver omits for some metrics. */
type ShownStability = 'shown' | 'omitted';

interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly stability: Stability;
  readonly shownStability?: ShownStability;
  readonly labels: readonly string[];
  /** The release that deprecated the metric, such as `1.29`. */
  readonly deprecatedFrom?: string;
}

interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds in ascending order; infinity is added. */
  readonly buckets: readonly number[];
}

interface SummaryDefinition extends MetricDefinition {
  readonly quantiles: readonly number[];
  /** Period for which a value counts in the quantiles, milliseconds. */
  readonly maxAgeMs: number;
  /** The current time on the clock of the observations. */
  readonly now: () => number;
}

/** A series that only grows. */
export interface Counter {
  add(by: number): void;
}

/** A series that can grow and shrink. */
export interface Gauge {
  set(value: number): void;
  add(by: number): void;
}

/** A series of observations, counted in buckets. */
export interface Histogram {
  /** `times` counts the observation several times. */
  observe(value: number, times?: number): void;
}

/** The series of one metric. */
export interface Family<Series> {
  /** The series with these label values, in the order of the definition's labels. */
  of(...values: readonly string[]): Series;
  /** Removes the series with these label values, if any. */
  remove(...values: readonly string[]): void;
  /** Removes all series, for gauges that are recomputed on each scrape. */
  clear(): void;
}

/** A registered metric. */
interface RegisteredMetric {
  readonly definition: MetricDefinition;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly isHidden: boolean;
}

/**
 * Counters, gauges, histograms, and summaries, rendered in Prometheus's text format. Callers look
 * up a series once by its labels and keep it, so counting is one addition.
 */
export interface MetricRegistry {
  counter(definition: MetricDefinition): Family<Counter>;
  gauge(definition: MetricDefinition): Family<Gauge>;
  histogram(definition: HistogramDefinition): Family<Histogram>;
  summary(definition: SummaryDefinition): Family<Summary>;
  /** All registered metrics, including hidden ones. */
  definitions(): Iterable<RegisteredMetric>;
  /** All metrics in text format version 0.0.4, sorted by name, in parts of about a millisecond. */
  parts(): Iterable<string>;
  /** The same as one text. */
  render(): string;
}

/** Registers a counter without labels; returns a function that adds one. */
export function eventCounter(
  registry: Pick<MetricRegistry, 'counter'>,
  definition: Omit<MetricDefinition, 'labels'>,
): () => void {
  const counter = registry.counter({ ...definition, labels: [] }).of();
  return () => counter.add(1);
}

/** Allowed values by metric and label. */
export type AllowedLabels = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/**
 * Maximum number of series of one metric. Further ones are not counted, because clients may control
 * label values.
 */
const seriesMax = 20_000;
/** Number of releases after which a deprecated metric is hidden by default (VER-6). */
const shownReleases = 1;

/**
 * Creates a registry. `release`, such as `1.32`, decides which deprecated metrics are hidden unless
 * `hidden` shows them; `onDeprecated` is called for each deprecated metric that is shown.
 */
export function createMetricRegistry(options: {
  readonly release: string;
  readonly hidden: 'hidden' | 'shown';
  /** Names of disabled metrics. */
  readonly disabled?: readonly string[];
  /** Labels that are restricted to some values; others become `unexpected`. */
  readonly allowed?: AllowedLabels;
  /** Called for each lookup of a series with a disallowed label value. */
  readonly onUnexpected?: () => void;
  readonly onDeprecated?: (metric: { readonly name: string; readonly from: string }) => void;
}): MetricRegistry {
  const shown = new Map<string, { parts(): Iterable<string> }>();
  const all: RegisteredMetric[] = [];
  const register = <Series>(definition: MetricDefinition, parts: Parts<Series>): Family<Series> => {
    const { name, deprecatedFrom: from } = definition;
    if (shown.has(name)) throw new Error(`the metric ${name} is already registered`);
    const family = createFamily(definition, parts);
    const age = from === undefined ? 0 : minorOf(options.release) - minorOf(from);
    const isOld = age >= shownReleases && options.hidden === 'hidden';
    const isHidden = isOld || options.disabled?.includes(name) === true;
    all.push({ definition, type: parts.type, isHidden });
    if (isHidden) return { of: () => parts.noop, remove: () => {}, clear: () => {} };
    if (from !== undefined && age >= 0) options.onDeprecated?.({ name, from });
    shown.set(name, family);
    const allowed = options.allowed?.get(name);
    return allowed === undefined
      ? family
      : restrictLabels(definition, family, { allowed, onUnexpected: options.onUnexpected });
  };
  function* parts(): Generator<string> {
    for (const name of [...shown.keys()].sort()) yield* shown.get(name)?.parts() ?? [];
  }
  return {
    counter: (definition) =>
      register<Counter>(definition, { type: 'counter', create: createValue, noop }),
    gauge: (definition) =>
      register<Gauge>(definition, { type: 'gauge', create: createValue, noop }),
    histogram: (definition) => {
      const bounds = boundsOf(definition.buckets);
      return register<Histogram>(definition, {
        type: 'histogram',
        create: () => createHistogram(bounds),
        noop,
      });
    },
    summary: (definition) =>
      register<Summary>(definition, {
        type: 'summary',
        create: () => createSummary(definition),
        noop,
      }),
    definitions: () => all,
    parts,
    render: () => [...parts()].join(''),
  };
}

/** Restricts the labels of a family to the allowed values. */
function restrictLabels<Series>(
  { labels }: MetricDefinition,
  family: Family<Series>,
  options: {
    readonly allowed: ReadonlyMap<string, ReadonlySet<string>>;
    readonly onUnexpected: (() => void) | undefined;
  },
): Family<Series> {
  const sets = labels.map((label) => options.allowed.get(label));
  const fit = (value: string, index: number) => {
    if (sets[index]?.has(value) !== false) return value;
    options.onUnexpected?.();
    return 'unexpected';
  };
  return { ...family, of: (...values) => family.of(...values.map(fit)) };
}

function minorOf(release: string): number {
  return Number(release.split('.')[1]);
}

/**
 * A series that can be rendered; a sample has a suffix of the name, additional labels, and a value.
 */
interface Rendered {
  samples(): readonly (readonly [suffix: string, labels: string, value: number])[];
}

interface Parts<Series> {
  readonly type: RegisteredMetric['type'];
  readonly create: () => Series & Rendered;
  /** The series of a hidden metric, which counts nothing. */
  readonly noop: Series;
}

const noop = { add: () => {}, set: () => {}, observe: () => {} };

function createFamily<Series>(
  definition: MetricDefinition,
  { type, create }: Parts<Series>,
): Family<Series> & { parts(): Iterable<string> } {
  const { name, labels } = definition;
  // The text format sorts labels by name.
  const ordered = labels.map((label, index) => ({ label, index }));
  ordered.sort((left, right) => (left.label < right.label ? -1 : 1));
  const series = new Map<string, { readonly labels: string; readonly series: Series & Rendered }>();
  return {
    of(...values) {
      const key = values.join('\0');
      const existing = series.get(key);
      if (existing !== undefined) return existing.series;
      const created = create();
      if (series.size < seriesMax) {
        const text = ordered.map(
          ({ label, index }) => `${label}="${escapeLabel(values[index] ?? '')}"`,
        );
        series.set(key, { labels: text.join(','), series: created });
      }
      return created;
    },
    remove: (...values) => void series.delete(values.join('\0')),
    clear: () => series.clear(),
    *parts() {
      // A copy, because a gauge may be cleared and set again between two parts.
      const entries = [...series.values()];
      let text = `# HELP ${name} ${helpOf(definition)}\n# TYPE ${name} ${type}\n`;
      for (const entry of entries) {
        for (const [suffix, more, value] of entry.series.samples()) {
          const all = entry.labels + (entry.labels === '' || more === '' ? '' : ',') + more;
          text += `${name}${suffix}${all === '' ? '' : `{${all}}`} ${formatNumber(value)}\n`;
        }
        if (text.length < partUnits) continue;
        yield text;
        text = '';
      }
      if (entries.length > 0) yield text;
    },
  };
}

/** Approximate length of a part of the text, in UTF-16 units. */
const partUnits = 16 * 1024;

function helpOf(definition: MetricDefinition): string {
  const { stability, deprecatedFrom, help, shownStability } = definition;
  const note = deprecatedFrom === undefined ? '' : `(Deprecated since ${deprecatedFrom}.0) `;
  const mark = shownStability === 'omitted' ? '' : `[${stability}] `;
  return `${mark}${note}${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`;
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

/** The bounds of a histogram's buckets, shared by its series. */
interface Bounds {
  readonly buckets: readonly number[];
  /** The label of each bucket, and of the one without a bound. */
  labels(): readonly string[];
}

/** Formats the labels for the first page and keeps them: most histograms have many series. */
function boundsOf(buckets: readonly number[]): Bounds {
  let labels: readonly string[] | undefined;
  return {
    buckets,
    labels() {
      labels ??= [...buckets, Number.POSITIVE_INFINITY].map((bound) => `le="${goFloat(bound)}"`);
      return labels;
    },
  };
}

function createHistogram({ buckets, labels }: Bounds): Histogram & Rendered {
  const counts = new Float64Array(buckets.length + 1);
  const last = buckets.length;
  let sum = 0;
  return {
    observe(value, times = 1) {
      let at = 0;
      while (at < last && value > (buckets[at] ?? 0)) at += 1;
      counts[at] = (counts[at] ?? 0) + times;
      sum += value * times;
    },
    samples() {
      let total = 0;
      const samples = labels().map((label, index): [string, string, number] => {
        total += counts[index] ?? 0;
        return ['_bucket', label, total];
      });
      return [...samples, ['_sum', '', sum], ['_count', '', total]];
    },
  };
}
