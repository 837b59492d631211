import { Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { JsonValue } from '../../../base/json.ts';

/** Why a text is no YAML, and where; line and column count from 1. */
export interface YamlFault {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

/** A text as a value. Integers keep all their digits. */
export type ReadYaml =
  | { readonly value: JsonValue; readonly fault?: undefined }
  | { readonly fault: YamlFault };

/** Numbers that a double cannot hold stay exact; an alias is not to become a million nodes. */
const parsing = { intAsBigInt: true, prettyErrors: false, version: '1.2', schema: 'core' } as const;
const printing = { lineWidth: 0, indentSeq: false } as const;
const aliasesMax = 100;

/** Reads a text that holds one YAML document (JSON is some). Never throws. */
export function readYaml(text: string): ReadYaml {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...parsing, lineCounter: lines });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    return { fault: { message: error.message, line, column: col } };
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: aliasesMax });
    return { value: narrowed((value ?? null) as JsonValue) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { fault: { message, line: 1, column: 1 } };
  }
}

/** A value as YAML, the way the server prints it. */
export function printYaml(value: JsonValue): string {
  const document = new Document(value, { version: '1.2', schema: 'core' });
  return document.toString(printing);
}

/** A value as JSON, with all digits of its integers. */
export function printJson(value: JsonValue, indent = ''): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  const entries = Array.isArray(value)
    ? value.map((item) => printJson(item, inner))
    : Object.entries(value).flatMap(([name, item]) =>
        item === undefined ? [] : [`${JSON.stringify(name)}: ${printJson(item, inner)}`],
      );
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return open + close;
  return `${open}\n${entries.map((entry) => inner + entry).join(',\n')}\n${indent}${close}`;
}

/** The text without what the server alone writes there; the rest stays as it is written. */
export function withoutManagedFields(text: string): string {
  const document = parseDocument(text, parsing);
  if (document.errors.length > 0 || !document.hasIn(['metadata', 'managedFields'])) return text;
  document.deleteIn(['metadata', 'managedFields']);
  return document.toString(printing);
}

/** The text with one of its metadata's members set, if it is an object at all. */
export function withMetadata(text: string, name: string, value: string): string {
  const document = parseDocument(text, parsing);
  if (document.errors.length > 0 || !isMap(document.contents)) return text;
  document.setIn(['metadata', name], value);
  return document.toString(printing);
}

/**
 * The line, counted from 1, of the field that a path as the server writes them names:
 * `spec.containers[0].image`, `data[a b]`, `.spec.replicas`. Of the nearest field around it, when it
 * is not in the text; undefined when the text is no object.
 */
export function lineOfField(text: string, path: string): number | undefined {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...parsing, lineCounter: lines });
  if (!isMap(document.contents)) return undefined;
  let node: Node | null = document.contents;
  let offset = node.range?.[0];
  let rest = fieldSteps(path);
  while (rest.length > 0) {
    const found = stepInto(node, rest);
    if (found === undefined) break;
    node = found.value;
    offset = found.offset ?? offset;
    rest = found.rest;
  }
  return offset === undefined ? undefined : lines.linePos(offset).line;
}

interface Step {
  readonly text: string;
  readonly isBracketed: boolean;
}

/** `a.b[0][c d]` as its steps. */
function fieldSteps(path: string): Step[] {
  return [...path.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, bracketed, plain]) => ({
    text: (bracketed ?? plain ?? '').replace(/^"(.*)"$/, '$1'),
    isBracketed: bracketed !== undefined,
  }));
}

function stepInto(node: Node | null, steps: readonly Step[]) {
  const [first] = steps;
  if (first === undefined) return undefined;
  if (isSeq(node)) return stepIntoList(node.items as (Node | null)[], steps);
  if (!isMap(node)) return undefined;
  // A name may itself have dots (`metadata.labels.example.com/x`): the longest that is there.
  for (let length = first.isBracketed ? 1 : steps.length; length > 0; length -= 1) {
    const name = steps
      .slice(0, length)
      .map(({ text }) => text)
      .join('.');
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
    if (pair === undefined) continue;
    const key = pair.key as Node;
    return {
      value: pair.value as Node | null,
      offset: key.range?.[0],
      rest: steps.slice(length),
    };
  }
  return undefined;
}

/** `[3]`, or `[name="web"]` as conflicts of apply name items. */
function stepIntoList(items: readonly (Node | null)[], steps: readonly Step[]) {
  const text = steps[0]?.text ?? '';
  const keys = [...text.matchAll(/([^,=]+)=(?:"([^"]*)"|([^,]*))/g)];
  const index =
    keys.length === 0
      ? Number(text)
      : items.findIndex(
          (item) =>
            isMap(item) &&
            keys.every(([, name, quoted, bare]) => String(item.get(name)) === (quoted ?? bare)),
        );
  const item = items[index];
  if (item === undefined || item === null) return undefined;
  return { value: item, offset: item.range?.[0], rest: steps.slice(1) };
}

/** Integers that a number holds exactly, as numbers. */
function narrowed(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') {
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }
  if (Array.isArray(value)) return value.map(narrowed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, item === undefined ? item : narrowed(item)]),
  );
}
