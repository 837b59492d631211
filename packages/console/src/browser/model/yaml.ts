import { encodeYaml, parseLeniently, readYamlSteps } from '@wheelhouse/codec/browser';
import { isObject, type JsonValue, runInOnePiece } from '@wheelhouse/machinery/browser';
import { isMap, isScalar, isSeq, type Node } from 'yaml';

/** A YAML syntax error and its position, starting at line 1. */
interface YamlFault {
  readonly message: string;
  readonly line: number;
}

/** The value of a text. Integers keep all their digits. */
type ReadYaml =
  | { readonly value: JsonValue; readonly fault?: undefined }
  | { readonly fault: YamlFault };

const valuesMax = 2_000_000;

/**
 * Parses one YAML or JSON document like the server: `yes` is true, and duplicate keys are errors.
 * Never throws.
 */
export function readYaml(text: string): ReadYaml {
  try {
    const { value, repeated } = runInOnePiece(readYamlSteps(text, { valuesMax }));
    const [first] = repeated;
    return first === undefined ? { value } : { fault: parseFault(first) };
  } catch (error) {
    return { fault: parseFault(error instanceof Error ? error.message : String(error)) };
  }
}

/** The parser's messages begin with the line, unless that is the first one. */
function parseFault(text: string): YamlFault {
  const [start = '', line = '1'] = /^(?:yaml: )?(?:line (\d+): )?/.exec(text) ?? [];
  return { message: text.slice(start.length), line: Number(line) };
}

/** Serializes a value as YAML, like the server. */
export function printYaml(value: JsonValue): string {
  return encodeYaml(value);
}

/** Removes `managedFields` from the text of an object. */
export function withoutManagedFields(text: string): string {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) return text;
  const { metadata } = read.value;
  if (!isObject(metadata) || metadata.managedFields === undefined) return text;
  const { managedFields: _, ...rest } = metadata;
  return encodeYaml({ ...read.value, metadata: rest });
}

/** Sets the resourceVersion in a text; returns the text unchanged if it is not an object. */
export function withResourceVersion(text: string, resourceVersion: string): string {
  const read = readYaml(text);
  if (read.fault !== undefined || !isObject(read.value)) return text;
  const { metadata } = read.value;
  const existingMetadata = isObject(metadata) ? metadata : {};
  return encodeYaml({ ...read.value, metadata: { ...existingMetadata, resourceVersion } });
}

/**
 * Parses a text once and returns a function to the line, starting at 1, of a field by its path in a
 * server message: `spec.containers[0].image`, `data[a b]`, `.spec.replicas`. Falls back to the
 * nearest enclosing field in the text; undefined if the text is not an object.
 */
export function linesOfFields(text: string): (path: string) => number | undefined {
  const { contents, lines } = parseLeniently(text);
  return (path) => {
    if (!isMap(contents)) return undefined;
    let node: Node | null = contents;
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
  };
}

/**
 * The path of field names at a character offset, without list items, as far as the text can be
 * parsed. Used to look up explanations.
 */
export function fieldAt(text: string, offset: number): string[] {
  const names: string[] = [];
  let node: Node | null = parseLeniently(text).contents;
  // Bounds the work for deeply nested text.
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

/** Splits a path such as `a.b[0][c d]` into steps. */
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
  // A key may contain dots (`metadata.labels.example.com/x`); the longest match wins.
  for (let length = first.isBracketed ? 1 : steps.length; length > 0; length -= 1) {
    const name = steps
      .slice(0, length)
      .map(({ text }) => text)
      .join('.');
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
    if (pair === undefined) continue;
    const key = pair.key as Node;
    return { value: pair.value as Node | null, offset: key.range?.[0], rest: steps.slice(length) };
  }
  return undefined;
}

/** Parses `[3]`, or `[name="web"]` as in apply conflicts. */
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

/** A piece of YAML or JSON text and its style. */
interface HighlightedText {
  readonly text: string;
  readonly style: 'key' | 'string' | 'literal' | 'plain';
}

/** Longer texts are not highlighted, which bounds the number of elements. */
const charactersMax = 200_000;

/**
 * Splits serialized YAML or JSON into pieces to highlight: the key of each line, then its value.
 * The concatenated pieces equal the text.
 */
export function highlight(text: string): HighlightedText[] {
  if (text.length > charactersMax) return [{ text, style: 'plain' }];
  const pieces: HighlightedText[] = [];
  for (const line of text.split(/(?<=\n)/)) {
    // Each pattern reads a character once, since a line may be as long as the text.
    const match = /^(\s*(?:-\s+)*)("(?:[^"\\]|\\.)*"|[\w./$-]+)(:)(\s.*|\s*)$/s.exec(line);
    if (match === null) {
      pieces.push(highlightValue(line));
      continue;
    }
    const [, indent = '', key = '', colon = '', value = ''] = match;
    pieces.push(
      { text: indent, style: 'plain' },
      { text: key, style: 'key' },
      { text: colon, style: 'plain' },
      highlightValue(value),
    );
  }
  return pieces.filter((piece) => piece.text !== '');
}

function highlightValue(text: string): HighlightedText {
  const value = text
    .replace(/^[\s-]*/, '')
    .trimEnd()
    .replace(/,$/, '');
  if (/^(true|false|null|-?\d[\d.eE+-]*)$/.test(value)) return { text, style: 'literal' };
  return { text, style: /^[[\]{}|>+-]*$/.test(value) ? 'plain' : 'string' };
}
