import {
  appendAll,
  inOnePiece,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualSteps,
  Stride,
} from '@wheelhouse/machinery';

/** A difference told to people, in the manner of Go's `cmp.Diff`: what went with `-`, what came with `+`. */

const capital = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const line = (mark: ' ' | '-' | '+', depth: number, text: string) =>
  `${mark} ${'\t'.repeat(depth)}${text}`;

/** Lines of one list or object that are made: no answer shows more of them. */
const linesMax = 1000;

/** Lines that lead from `old` to `next`, each member in which they differ with those around it left out. */
export function goDifference(type: string, old: JsonObject, next: JsonObject): string {
  return inOnePiece(goDifferenceSteps(type, old, next));
}

/** `goDifference` in steps, for large objects. */
export function* goDifferenceSteps(
  type: string,
  old: JsonObject,
  next: JsonObject,
): Generator<void, string> {
  const stride = new Stride();
  const found = yield* lines({ head: `${type}{`, old, next, depth: 0 }, stride);
  return `${found.join('\n')}\n`;
}

/** Whether two parts are the same, in steps. */
function* same(
  old: JsonValue | undefined,
  next: JsonValue | undefined,
  stride: Stride,
): Generator<void, boolean> {
  const isLight = stride.weigh(old) === 'light';
  if (stride.isOver) yield;
  return isLight ? jsonEqual(old, next) : yield* jsonEqualSteps(old, next);
}

interface Place {
  /** What stands before the opening brace, brace included. */
  readonly head: string;
  readonly old: JsonObject;
  readonly next: JsonObject;
  readonly depth: number;
}

function* lines({ head, old, next, depth }: Place, stride: Stride): Generator<void, string[]> {
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])];
  const close = line(' ', depth, depth === 0 ? '}' : '},');
  const members = yield* memberLines(names, { old, next, depth }, stride);
  return [line(' ', depth, head), ...members, close];
}

function* memberLines(
  names: readonly string[],
  { old, next, depth }: Omit<Place, 'head'>,
  stride: Stride,
): Generator<void, string[]> {
  const found: string[] = [];
  let alike = 0;
  const tellAlike = () => {
    if (alike > 0) {
      const fields = alike === 1 ? 'field' : 'fields';
      found.push(line(' ', depth + 1, `... // ${alike} identical ${fields}`));
    }
    alike = 0;
  };
  for (const name of names) {
    if (found.length > linesMax) break;
    if (yield* same(old[name], next[name], stride)) {
      alike += 1;
      continue;
    }
    tellAlike();
    const at = { old: old[name], next: next[name], depth: depth + 1 };
    appendAll(found, yield* valueLines(`${capital(name)}: `, at, stride));
  }
  tellAlike();
  return found;
}

function* valueLines(
  label: string,
  at: { old: JsonValue | undefined; next: JsonValue | undefined; depth: number },
  stride: Stride,
): Generator<void, string[]> {
  const { old, next, depth } = at;
  if (isObject(old) && isObject(next)) {
    return yield* lines({ head: `${label}{`, old, next, depth }, stride);
  }
  if (!Array.isArray(old) || !Array.isArray(next)) {
    return [
      ...(old === undefined ? [] : [line('-', depth, `${label}${shown(old)},`)]),
      ...(next === undefined ? [] : [line('+', depth, `${label}${shown(next)},`)]),
    ];
  }
  const length = Math.max(old.length, next.length);
  const items = Array.from({ length }, (_, index) => ({ old: old[index], next: next[index] }));
  const changed: string[] = [];
  for (const item of items) {
    if (changed.length > linesMax) break;
    if (yield* same(item.old, item.next, stride)) continue;
    appendAll(changed, yield* valueLines('', { ...item, depth: depth + 1 }, stride));
  }
  return [line(' ', depth, `${label}{`), ...changed, line(' ', depth, '},')];
}

const shown = (value: JsonValue) =>
  JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? Number(member) : member));
