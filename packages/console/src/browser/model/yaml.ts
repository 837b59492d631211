import { encodeYaml, readTree, treeParsing } from '@wheelhouse/codec/browser';
import { isObject, type JsonValue } from '@wheelhouse/machinery/browser';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';

/** Why a text is no YAML, and where, counted from 1. */
export interface YamlFault {
  readonly message: string;
  readonly line: number;
}

/** A text as a value. Integers keep all their digits. */
export type ReadYaml =
  | { readonly value: JsonValue; readonly fault?: undefined }
  | { readonly fault: YamlFault };

function parse(text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...treeParsing, lineCounter: lines });
  return { document, lines };
}

/**
 * Reads a text that holds one YAML document (JSON is some) as the server will: `yes` is true, and a
 * key may stand only once. Never throws.
 */
export function readYaml(text: string): ReadYaml {
  const { document, lines } = parse(text);
  const [error] = document.errors;
  if (error !== undefined) {
    return { fault: { message: error.message, line: lines.linePos(error.pos[0]).line } };
  }
  try {
    const { value, repeated } = readTree(document, lines);
    const [first] = repeated;
    return first === undefined ? { value } : { fault: faultOf(first) };
  } catch (error) {
    return { fault: faultOf(error instanceof Error ? error.message : String(error)) };
  }
}

/** The decoder names the line within its words. */
function faultOf(message: string): YamlFault {
  return { message, line: Number(/line (\d+):/.exec(message)?.[1] ?? 1) };
}

/** A value as YAML, the way the server prints it. */
export function printYaml(value: JsonValue): string {
  return encodeYaml(value);
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

/** The server's text of an object without what the server alone writes there. */
export function withoutManagedFields(text: string): string {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) return text;
  const { metadata } = read.value;
  if (!isObject(metadata) || metadata.managedFields === undefined) return text;
  const { managedFields: _, ...rest } = metadata;
  return encodeYaml({ ...read.value, metadata: rest });
}

/** What a text says, with one member of its metadata set; the text itself when that is no object. */
export function withMetadata(text: string, name: string, value: string): string {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) return text;
  const { metadata } = read.value;
  const existingMetadata = isObject(metadata) ? metadata : {};
  return encodeYaml({ ...read.value, metadata: { ...existingMetadata, [name]: value } });
}

/**
 * The line, counted from 1, of the field that a path as the server writes them names:
 * `spec.containers[0].image`, `data[a b]`, `.spec.replicas`. Of the nearest field around it, when it
 * is not in the text; undefined when the text is no object.
 */
export function lineOfField(text: string, path: string): number | undefined {
  const { document, lines } = parse(text);
  if (!isMap(document.contents)) return undefined;
  let node: Node | null = document.contents as Node;
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

/**
 * The names that lead to the field at a place of the text, counted in characters from 0, list items
 * left out: what is explained there. As far as the text can be read.
 */
export function fieldAt(text: string, offset: number): string[] {
  const { document } = parse(text);
  const names: string[] = [];
  let node = document.contents as Node | null;
  // The tree has an end; a text of ten thousand brackets is not worth waiting for.
  for (let depth = 0; depth < 250; depth += 1) {
    if (isSeq(node)) {
      node = (node.items as (Node | null)[]).findLast((item) => startOf(item) <= offset) ?? null;
    } else if (isMap(node)) {
      const pair = node.items.findLast(({ key }) => startOf(key as Node | null) <= offset);
      if (!isScalar(pair?.key)) return names;
      names.push(String(pair.key.value));
      node = pair.value as Node | null;
    } else return names;
  }
  return names;
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? Number.POSITIVE_INFINITY;
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
