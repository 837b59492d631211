/** Quantiles of what was observed of late. */
export interface Summary {
  /** `atMs`: when, on the clock of the definition. */
  observe(value: number, atMs: number): void;
}

/** Values below count as this, those above as `largest`. */
const smallest = 1e-6;
const largest = 1e3;
/** Neighbouring classes differ by 2 %, so that a quantile is right to 1 %. */
const growth = Math.log(1.02);
const classes = Math.ceil(Math.log(largest / smallest) / growth) + 1;
/** The window moves on by a fifth of its length. */
const parts = 5;

/**
 * A series of a summary. Values are counted by classes of nearly equal ones, apart for each fifth of
 * the time, so that observing one is an addition and the memory is bounded.
 *
 * Worked example, `maxAgeMs` 5 h: at 7:30 the parts are those begun at 3, 4, 5, 6 and 7; a value of
 * 0.01 s adds 1 to class 466 of the last. At 8:00 the part begun at 3 is emptied and begun anew.
 */
export function createSummary(options: {
  readonly quantiles: readonly number[];
  readonly maxAgeMs: number;
  readonly now: () => number;
}): Summary & {
  samples(): readonly (readonly [suffix: string, labels: string, value: number])[];
} {
  const partMs = options.maxAgeMs / parts;
  const counts = Array.from({ length: parts }, () => new Uint32Array(classes));
  let begun = Math.floor(options.now() / partMs);
  let current = counts[begun % parts] as Uint32Array;
  let sum = 0;
  let total = 0;
  const moveTo = (atMs: number) => {
    const reached = Math.floor(atMs / partMs);
    const passed = Math.min(reached - begun, parts);
    for (let step = 0; step < passed; step += 1) counts[(reached - step) % parts]?.fill(0);
    begun = Math.max(begun, reached);
    current = counts[begun % parts] as Uint32Array;
  };
  return {
    observe(value, atMs) {
      if (atMs >= (begun + 1) * partMs) moveTo(atMs);
      const at = classOf(value);
      current[at] = (current[at] as number) + 1;
      sum += value;
      total += 1;
    },
    samples() {
      moveTo(options.now());
      const shown = options.quantiles.map(
        (quantile) => ['', `quantile="${quantile}"`, quantileOf(counts, quantile)] as const,
      );
      return [...shown, ['_sum', '', sum], ['_count', '', total]];
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
      sums[at] = (sums[at] as number) + count;
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
