import { appendAll, isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { type FilterTest, filterOf } from './path-filter.ts';

/** One step of a path, from each value to those it leads to. */
type Step =
  | { readonly kind: 'member'; readonly name: string }
  | { readonly kind: 'slice'; readonly slice: Slice }
  | { readonly kind: 'all' }
  /** The value and all that is in it, as far as it holds anything. */
  | { readonly kind: 'descend' }
  | { readonly kind: 'union'; readonly paths: readonly Path[] }
  | { readonly kind: 'filter'; readonly test: FilterTest };

type Path = readonly Step[];

interface Slice {
  readonly start: number;
  /** Absent: to the end, or where `isOne` is set one item. */
  readonly end: number | undefined;
  readonly step: number;
  readonly isOne: boolean;
}

const sliceForm = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const quotedForm = /^'([^']*)'$/;
/** What ends a name: the next step, or what stands between steps. */
const nameForm = /^(?:[^.[\]\\,$@{}\s]|\\.)*/;
const between = /^[ @$]+/;
const depthMax = 64;
/** More are not looked at: repeated steps could otherwise lead to any number. */
const valuesMax = 10_000;

/**
 * Reads the first value at a JSONPath as printer columns and selectable fields have them
 * (`.spec.a`, `.items[-1:]`, `.conditions[?(@.type=="Ready")].status`, `..name`). Undefined for a path
 * that is none; the reader gives undefined where the path leads nowhere.
 */
export function pathReader(
  path: string,
): ((value: JsonValue) => JsonValue | undefined) | undefined {
  const steps = path === '.' ? [] : parse(path, 0);
  return steps && ((value) => valuesAt(steps, value)?.[0]);
}

/** Whether a path's reader may look at the member that names lead to, or at what holds it. */
export function mayRead(path: string, names: readonly string[]): boolean {
  const steps = path === '.' ? [] : parse(path, 0);
  return steps !== undefined && mayLead(steps, names);
}

function mayLead(steps: Path, names: readonly string[]): boolean {
  for (const [at, name] of names.entries()) {
    const step = steps[at];
    if (step === undefined || step.kind === 'descend') return true;
    if (step.kind === 'union') {
      return step.paths.some((one) => mayLead([...one, ...steps.slice(at + 1)], names.slice(at)));
    }
    if (step.kind !== 'all' && !(step.kind === 'member' && step.name === name)) return false;
  }
  return true;
}

/** Steps of a path; undefined when it is malformed. Brackets may hold paths, to a depth. */
function parse(path: string, depth: number): Path | undefined {
  if (depth > depthMax) return undefined;
  const steps: Step[] = [];
  let rest = path.replace(between, '');
  while (rest !== '') {
    const found = rest.startsWith('[') ? bracketStep(rest, depth) : dotStep(rest);
    if (found === undefined) return undefined;
    appendAll(steps, found.steps);
    rest = rest.slice(found.length).replace(between, '');
  }
  return steps;
}

interface Found {
  readonly steps: readonly Step[];
  readonly length: number;
}

function dotStep(text: string): Found | undefined {
  if (!text.startsWith('.')) return undefined;
  if (text.startsWith('..')) return { steps: [{ kind: 'descend' }], length: descentLength(text) };
  if (text.startsWith('.*')) return { steps: [{ kind: 'all' }], length: 2 };
  const [written = ''] = nameForm.exec(text.slice(1)) ?? [];
  const name = written.replace(/\\(.)/g, '$1');
  return { steps: [{ kind: 'member', name }], length: written.length + 1 };
}

/** The second dot is the next step's, if that is a name. */
const descentLength = (text: string) => (text[2] === '[' || text.length === 2 ? 2 : 1);

function bracketStep(text: string, depth: number): Found | undefined {
  const end = closing(text);
  if (end === undefined) return undefined;
  const inner = text.slice(1, end).trim();
  const parts = inner.startsWith('?') ? [inner] : inner.split(',');
  const paths = parts.map((part) => innerPath(part.trim(), depth));
  if (paths.some((path) => path === undefined)) return undefined;
  const [only = []] = paths as readonly Path[];
  const steps: Path =
    paths.length === 1 ? only : [{ kind: 'union', paths: paths as readonly Path[] }];
  return { steps, length: end + 1 };
}

/** Where the bracket closes that the text begins with, quoted text aside. */
function closing(text: string): number | undefined {
  let depth = 0;
  let quote = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === '[') depth += 1;
    else if (character === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

function innerPath(inner: string, depth: number): Path | undefined {
  if (inner === '*') return [{ kind: 'all' }];
  if (inner.startsWith('?')) {
    const test = filterOf(inner, (path) => {
      const steps = parse(path, depth + 1);
      return steps && ((value) => valuesAt(steps, value));
    });
    return test && [{ kind: 'filter', test }];
  }
  const slice = sliceForm.exec(inner);
  if (slice !== null && inner !== '') return [{ kind: 'slice', slice: sliceOf(slice) }];
  const quoted = quotedForm.exec(inner);
  // As upstream reads it: a dot parts names here as well, unless it is escaped.
  return quoted === null ? undefined : parse(`.${quoted[1]}`, depth + 1);
}

function sliceOf([, first = '', second, third]: RegExpExecArray): Slice {
  const number = (text: string | undefined) =>
    text === undefined || text === '' || text === ':' ? undefined : Number(text.replace(':', ''));
  return {
    start: number(first) ?? 0,
    end: number(second),
    step: number(third) ?? 1,
    isOne: second === undefined,
  };
}

/** The values that steps lead to; undefined where upstream gives up: out of range, not comparable. */
function valuesAt(steps: Path, value: JsonValue): readonly JsonValue[] | undefined {
  let values: readonly JsonValue[] = [value];
  for (const step of steps) {
    const next: JsonValue[] = [];
    for (const one of values) {
      const found = take(step, one);
      if (found === undefined) return undefined;
      for (const each of found) next.push(each);
      if (next.length > valuesMax) return undefined;
    }
    values = next;
  }
  return values;
}

function take(step: Step, value: JsonValue): readonly JsonValue[] | undefined {
  switch (step.kind) {
    case 'member':
      return own(value, step.name);
    case 'all':
      return contents(value);
    case 'descend':
      return descended(value);
    case 'slice':
      return Array.isArray(value) ? sliced(value, step.slice) : [];
    case 'union':
      return unionOf(step.paths, value);
    case 'filter':
      return filtered(step.test, value);
  }
}

function own(value: JsonValue, name: string): readonly JsonValue[] {
  const found = isObject(value) ? member(value, name) : undefined;
  return found === undefined ? [] : [found];
}

function contents(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value).filter((one) => one !== undefined) : [];
}

function descended(value: JsonValue): JsonValue[] {
  const inside = contents(value);
  return inside.length === 0 ? [] : [value, ...inside.flatMap(descended)];
}

function sliced(list: readonly JsonValue[], slice: Slice): readonly JsonValue[] | undefined {
  const { length } = list;
  const fromEnd = (at: number) => (at < 0 ? at + length : at);
  const start = fromEnd(slice.start);
  const end = slice.isOne ? start + 1 : fromEnd(slice.end ?? length);
  if (start === end) return [];
  if (start < 0 || start >= length || end > length || start > end || slice.step < 1) {
    return undefined;
  }
  return list.slice(start, end).filter((_, index) => index % slice.step === 0);
}

function unionOf(paths: readonly Path[], value: JsonValue): readonly JsonValue[] | undefined {
  const all = paths.map((path) => valuesAt(path, value));
  return all.some((one) => one === undefined) ? undefined : all.flatMap((one) => one ?? []);
}

function filtered(test: FilterTest, value: JsonValue): readonly JsonValue[] | undefined {
  const kept: JsonValue[] = [];
  for (const item of Array.isArray(value) ? value : []) {
    const verdict = test(item);
    if (verdict === undefined) return undefined;
    if (verdict) kept.push(item);
  }
  return kept;
}
