import { bodyValuesMax } from '@wheelhouse/codec';
import type { MaybeSteps, ResourceDef } from '@wheelhouse/kinds';
import { isObject, type JsonObject, type JsonValue, randomOf } from '@wheelhouse/machinery';
import { DecodeError } from '@wheelhouse/schema';
import { threadCpuMs } from '../support/cpu-time.ts';
import { type Collection, filled, type Variant, variants } from './growth-shapes.ts';
import { type SiegeFigures, type SiegeOptions, type SiegePart, timeLimit } from './part.ts';
import {
  completed,
  exampleOf,
  type RuleForm,
  ruledCollections,
  ruledKinds,
  ruleForms,
  rulePasses,
  writes,
} from './rule-cases.ts';
import { fitting } from './step-requests.ts';

/**
 * Measures the longest step of the rules of a kind (TRUST-2), without a server: defaults,
 * preparation, validation, warnings, and table cells of an object as large as a body may be.
 * `STEPS_EVERY=invalid` takes all collections of all kinds in turn instead of random ones (also
 * `equal`, `distinct`, `unknown`), and `STEPS_ONLY` selects them by a pattern of their names.
 */
export const rulesPart: SiegePart = {
  name: 'rules',
  summary:
    'The longest uninterrupted step of the rules of kinds, in CPU time of the main thread; a ' +
    'round is one large object.',
  defaultRounds: 100,
  run,
};

/** Figures below this number of CPU milliseconds are not printed; the bound is 20. */
const shownFromMs = 10;

/** Milliseconds of a slice of work, as in `packages/machinery/src/base/work.ts`. */
const sliceMs = 5;

/** How often an object is written again: the first time, code may not be compiled yet. */
const repetitions = 3;

async function run(options: SiegeOptions): Promise<SiegeFigures> {
  const { seed, rounds, log } = options;
  const isOver = timeLimit(options);
  const only = new RegExp(process.env['STEPS_ONLY'] ?? '');
  const figures: Record<string, string> = {};
  let round = 0;
  let longest: Measured = { ms: 0, pass: '' };
  for (const ruleCase of casesOf(seed)) {
    if (round === rounds || isOver()) break;
    const { def, collection, variant, form } = ruleCase;
    const name = `${form} ${def.kind}, ${variant} ${collection.steps.join('.')}`;
    if (!only.test(name)) continue;
    const body = largestBody(ruleCase);
    if (body === undefined) continue;
    round += 1;
    const first = measure(def, body, form);
    const later = Array.from({ length: repetitions }, () => measure(def, body, form));
    later.sort((left, right) => left.ms - right.ms);
    const median = later[later.length >> 1] ?? first;
    for (const one of [first, median]) if (one.ms > longest.ms) longest = one;
    if (Math.max(first.ms, median.ms) < shownFromMs) continue;
    const shown = (one: Measured) => `${one.ms.toFixed(1)} ms (${one.pass})`;
    figures[name] = `first ${shown(first)}, later ${shown(median)}`;
    log(`${figures[name]}  ${name}`);
  }
  return { ...figures, longest: `${longest.ms.toFixed(1)} ms (${longest.pass})` };
}

interface RuleCase {
  readonly def: ResourceDef;
  readonly collection: Collection;
  readonly variant: Variant;
  readonly form: RuleForm;
}

/** The objects of a run; infinite unless they are all of one variant. */
function* casesOf(seed: number): Generator<RuleCase> {
  const every = variants.find((variant) => variant === process.env['STEPS_EVERY']);
  if (every !== undefined) {
    for (const def of ruledKinds) {
      for (const collection of ruledCollections(def)) {
        for (const form of ruleForms) {
          if (writes(form, collection)) yield { def, collection, variant: every, form };
        }
      }
    }
    return;
  }
  const { pick } = randomOf(seed);
  for (;;) {
    const def = pick(ruledKinds);
    const collections = ruledCollections(def);
    if (collections.length === 0) continue;
    const collection = pick(collections);
    const form = pick(ruleForms);
    if (writes(form, collection)) yield { def, collection, variant: pick(variants), form };
  }
}

interface Measured {
  readonly ms: number;
  /** The pass with the longest step. */
  readonly pass: string;
}

/**
 * The body with the most items, as a body and with its defaults; undefined if no body of the kind
 * is like that.
 */
function largestBody({ def, collection, variant }: RuleCase): JsonObject | undefined {
  const wide = filled(exampleOf(def), collection, { variant, count: bodyValuesMax });
  try {
    for (let scale = 1; ; scale *= 0.85) {
      const body = fitting(wide, 'application/json', scale);
      if (valuesIn(completed(def, body)) <= bodyValuesMax) return body;
    }
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** Writes an object, and returns its longest step. */
function measure(def: ResourceDef, body: JsonObject, form: RuleForm): Measured {
  let longest: Measured = { ms: 0, pass: '' };
  for (const [pass, begin] of rulePasses(def, body, form)) {
    const ms = longestStep(begin);
    if (ms > longest.ms) longest = { ms, pass };
  }
  return longest;
}

function valuesIn(value: JsonValue | undefined): number {
  const parts = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return parts.reduce<number>((sum, part) => sum + valuesIn(part), 1);
}

/** The CPU time of the longest step, in milliseconds, if the work pauses at the end of a slice. */
function longestStep(begin: () => MaybeSteps<unknown>): number {
  let beganMs = threadCpuMs();
  let longestMs = 0;
  const work = begin();
  const next = isGenerator(work) ? () => work.next().done === true : () => true;
  for (let isDone = false; !isDone; ) {
    isDone = next();
    const nowMs = threadCpuMs();
    longestMs = Math.max(longestMs, nowMs - beganMs);
    if (nowMs - beganMs >= sliceMs) beganMs = threadCpuMs();
  }
  return longestMs;
}

const isGenerator = (work: unknown): work is Generator<void, unknown> =>
  typeof work === 'object' && work !== null && 'next' in work;
