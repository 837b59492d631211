import {
  appendAll,
  capitalize,
  goItems,
  goQuoted,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualSteps,
  Stride,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { NodeSelectorTerm } from '../gen/types/core/v1.ts';
import type { LabelSelector } from '../gen/types/meta/v1.ts';
import type { Stored } from '../resource-def.ts';
import { goStrings, sortedKeys } from '../rules/checks.ts';
import { isList, objectsAt } from '../rules/fill.ts';
import { textsAt } from './fields.ts';

/**
 * Returns the differences between two objects in the format of Go's `cmp.Diff`, in steps: `-` marks
 * removed lines, `+` added ones, and a line counts the equal members between them.
 * @param type the Go type in the first line
 */
export function* goDifference(
  type: string,
  old: JsonObject,
  next: JsonObject,
): Generator<void, string> {
  const stride = new Stride();
  const differences = yield* lines({ head: `${type}{`, old, next, depth: 0 }, stride);
  return `${differences.join('\n')}\n`;
}

interface Place {
  /** The text before the opening brace, and the brace. */
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

const line = (mark: ' ' | '-' | '+', depth: number, text: string) =>
  `${mark} ${'\t'.repeat(depth)}${text}`;

/** Upper bound of the lines of one list or object; no response shows more. */
const linesMax = 1000;

function* memberLines(
  names: readonly string[],
  { old, next, depth }: Omit<Place, 'head'>,
  stride: Stride,
): Generator<void, string[]> {
  const differences: string[] = [];
  let identical = 0;
  const addIdentical = () => {
    if (identical > 0) {
      const fields = identical === 1 ? 'field' : 'fields';
      differences.push(line(' ', depth + 1, `... // ${identical} identical ${fields}`));
    }
    identical = 0;
  };
  for (const name of names) {
    if (differences.length > linesMax) break;
    if (yield* same(old[name], next[name], stride)) {
      identical += 1;
      continue;
    }
    addIdentical();
    const at = { old: old[name], next: next[name], depth: depth + 1 };
    appendAll(differences, yield* valueLines(`${capitalize(name)}: `, at, stride));
  }
  addIdentical();
  return differences;
}

/** Whether two values are equal, in steps. */
function* same(
  old: JsonValue | undefined,
  next: JsonValue | undefined,
  stride: Stride,
): Generator<void, boolean> {
  const isLight = stride.weigh(old) === 'light';
  if (stride.isOver) yield;
  return isLight ? jsonEqual(old, next) : yield* jsonEqualSteps(old, next);
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

/** Prints a map of strings like Go's `%#v`, as kube-apiserver does in errors. */
export function goStringMap(map: JsonObject | undefined): string {
  if (map === undefined) return 'map[string]string(nil)';
  const member = (key: string) => `${goQuoted(key)}:${goQuoted(String(map[key]))}`;
  return `map[string]string{${goItems(sortedKeys(map), member)}}`;
}

/** Prints a list of structs like Go's `%#v`; an empty one as nil. */
export function goStructs<Item>(
  type: string,
  items: readonly Item[],
  print: (item: Item) => string,
): string {
  return items.length === 0 ? `[]${type}(nil)` : `[]${type}{${goItems(items, print)}}`;
}

/** Prints a label selector like Go's `%#v`. */
export function goSelector(selector: Stored<LabelSelector> | undefined): string {
  if (selector === undefined) return '"null"';
  const type = 'v1.LabelSelectorRequirement';
  const expressions = selector.matchExpressions ?? [];
  const shown = goStructs(type, expressions, requirement(type));
  const labels = goStringMap(selector.matchLabels);
  return `v1.LabelSelector{MatchLabels:${labels}, MatchExpressions:${shown}}`;
}

const requirement = (type: string) => (expression: JsonObject) =>
  `${type}{Key:${goQuoted(textAt(expression, 'key'))}, ` +
  `Operator:${goQuoted(textAt(expression, 'operator'))}, Values:${goTexts(expression, 'values')}}`;

const goTexts = (object: JsonObject, name: string) =>
  isList(object, name) ? goStrings(textsAt(object, name)) : '[]string(nil)';

/** Prints a term of a node selector like Go's `%#v`. */
export function goNodeSelectorTerm(term: Stored<NodeSelectorTerm>): string {
  const type = 'core.NodeSelectorRequirement';
  const part = (name: string) => goStructs(type, objectsAt(term, name), requirement(type));
  const [expressions, fields] = [part('matchExpressions'), part('matchFields')];
  return `core.NodeSelectorTerm{MatchExpressions:${expressions}, MatchFields:${fields}}`;
}

/** Prints a number or percentage like Go's `%#v`. */
export function goIntOrString(value: JsonValue | undefined): string {
  const isText = typeof value === 'string';
  const number = isText ? 0 : Number(value ?? 0);
  const text = goQuoted(isText ? value : '');
  return `intstr.IntOrString{Type:${isText ? 1 : 0}, IntVal:${number}, StrVal:${text}}`;
}

/** Prints a quantity like Go's `%#v`: an integer and a power of ten. */
export function goQuantity(text: string): string {
  const [, sign = '', whole = '', fraction = '', suffix = ''] =
    /^([+-]?)(\d*)(?:\.(\d*))?(.*)$/.exec(text) ?? [];
  const format = suffix.endsWith('i') ? 'BinarySI' : 'DecimalSI';
  const binary = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].indexOf(suffix) + 1;
  const power = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }[suffix] ?? 0;
  const digits = `${whole}${fraction}`.replace(/^0+(?=\d)/, '');
  const value = BigInt(digits === '' ? 0 : digits) * 1024n ** BigInt(binary);
  const amount = `value:${sign === '-' ? '-' : ''}${value}, scale:${power - fraction.length}`;
  return (
    `resource.Quantity{i:resource.int64Amount{${amount}}, ` +
    `d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:${JSON.stringify(text)}, Format:"${format}"}`
  );
}

/** Prints an update strategy without settings like Go's `%#v`. */
export const goStrategy = (type: string, name: string, settings: string): string =>
  `${type}{Type:${goQuoted(name)}, RollingUpdate:(${settings})(nil)}`;
