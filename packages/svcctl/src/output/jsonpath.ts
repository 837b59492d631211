import {
  isObject,
  type JsonPath,
  JsonPathError,
  type JsonPathSlice,
  type JsonPathStep,
  type JsonValue,
  parseJsonPath,
  valuesAtJsonPath,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { compactJson } from './go-json.ts';

/**
 * A JSONPath template of kubectl: text with actions in braces. An action is a path of `.a.b`,
 * `['a']`, `[0]`, `[1:3]`, `[*]`, `..a`, and `[?(@.a=="b")]`, a quoted string, `range` with a path,
 * or `end`.
 */
export type Template = readonly Node[];

type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'path'; readonly path: JsonPath }
  | { readonly type: 'range'; readonly path: JsonPath; readonly body: Template };

interface OpenRange {
  readonly nodes: Node[];
  readonly path: JsonPath;
}

const depthMax = 64;

/** Parses a template. Throws CliError. */
export function parseTemplate(source: string): Template {
  const stack: OpenRange[] = [{ nodes: [], path: parsePath('') }];
  for (let at = 0; at < source.length; ) {
    const open = source.indexOf('{', at);
    if (open !== at) {
      const end = open < 0 ? source.length : open;
      stack.at(-1)!.nodes.push({ type: 'text', text: source.slice(at, end) });
      at = end;
      continue;
    }
    const close = findClosingBrace(source, open);
    parseAction(source.slice(open + 1, close).trim(), stack);
    at = close + 1;
  }
  if (stack.length !== 1) throw new CliError('unclosed range');
  return stack[0]!.nodes;
}

function parseAction(action: string, stack: OpenRange[]): void {
  if (action === 'end') {
    const ended = stack.length > 1 ? stack.pop() : undefined;
    if (ended === undefined) throw new CliError('not in range, nothing to end');
    stack.at(-1)!.nodes.push({ type: 'range', path: ended.path, body: ended.nodes });
  } else if (/^range[^\w-]/.test(action)) {
    if (stack.length > depthMax) throw new CliError('nested too deeply');
    stack.push({ nodes: [], path: parsePath(action.slice('range'.length).trim()) });
  } else if (action.startsWith('"') || action.startsWith("'")) {
    stack.at(-1)!.nodes.push({ type: 'text', text: unquote(action) });
  } else {
    stack.at(-1)!.nodes.push({ type: 'path', path: parsePath(action) });
  }
}

function findClosingBrace(source: string, open: number): number {
  let quote = '';
  for (let at = open + 1; at < source.length; at++) {
    const character = source[at]!;
    if (quote !== '') {
      if (character === '\\') at += 1;
      else if (character === quote) quote = '';
    } else if (character === '"' || character === "'") {
      quote = character;
    } else if (character === '}') {
      return at;
    }
  }
  throw new CliError('unclosed action');
}

function unquote(text: string): string {
  const inner = text.slice(1, -1);
  return inner.replace(/\\(.)/g, (_, letter: string) =>
    letter === 'n' ? '\n' : letter === 't' ? '\t' : letter,
  );
}

/** Parses a path, with or without `$` and the leading dot. Throws CliError. */
export function parsePath(source: string): JsonPath {
  try {
    return parseJsonPath(source, 'relaxed');
  } catch (error) {
    throw error instanceof JsonPathError ? new CliError(error.message) : error;
  }
}

/**
 * Parses the path of a column or of a sort, with or without braces around it. Throws CliError.
 * @returns the path, and its text in kubectl's complete form: `{.metadata.name}`
 */
export function parseColumnPath(source: string): {
  readonly path: JsonPath;
  readonly text: string;
} {
  const match = /^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$/.exec(source);
  if (match === null) {
    throw new CliError(
      "unexpected path string, expected a 'name1.name2' or '.name1.name2' or " +
        "'{name1.name2}' or '{.name1.name2}'",
    );
  }
  const inner = `.${match[1] ?? match[2] ?? ''}`;
  return { path: parsePath(inner), text: `{${inner}}` };
}

/** Returns all values at a path. */
export function selectPath(path: JsonPath, root: JsonValue): readonly JsonValue[] {
  return valuesAtJsonPath(path, root) ?? [];
}

/** Renders a template. */
export function renderTemplate(template: Template, value: JsonValue): string {
  return template
    .map((node) => {
      if (node.type === 'text') return node.text;
      const selected = selectPath(node.path, value);
      if (node.type === 'path') return selected.map(valueText).join(' ');
      return selected.map((item) => renderTemplate(node.body, item)).join('');
    })
    .join('');
}

/** Returns the values at the paths of a template, in order, without its text. */
export function valuesOfTemplate(template: Template, value: JsonValue): JsonValue[] {
  return template.flatMap((node) => {
    if (node.type === 'text') return [];
    const selected = selectPath(node.path, value);
    if (node.type === 'path') return selected;
    return selected.flatMap((item) => valuesOfTemplate(node.body, item));
  });
}

/**
 * Finds the first reason why client-go fails to evaluate a template: an index outside of a list, or
 * of a value that is not a list.
 * @param options.missing `is an error` if paths may not name members that the value lacks
 */
export function evaluationProblem(
  template: Template,
  value: JsonValue,
  options: { readonly missing: 'is an error' | 'is empty' },
): string | undefined {
  for (const node of template) {
    if (node.type === 'text') continue;
    let values: readonly JsonValue[] = [value];
    for (const [at, step] of node.path.steps.entries()) {
      const next = (item: JsonValue) => selectPath({ ...node.path, steps: [step] }, item);
      const isDescent = node.path.steps[at - 1]?.kind === 'descend';
      const problem = isDescent ? undefined : stepProblem(step, values, { ...options, next });
      if (problem !== undefined) return problem;
      values = values.flatMap(next);
    }
    if (node.type !== 'range') continue;
    for (const item of values) {
      const problem = evaluationProblem(node.body, item, options);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function stepProblem(
  step: JsonPathStep,
  values: readonly JsonValue[],
  options: {
    readonly missing: 'is an error' | 'is empty';
    readonly next: (item: JsonValue) => readonly JsonValue[];
  },
): string | undefined {
  if (step.kind === 'slice') {
    return values
      .map((item) => sliceProblem(step.slice, item))
      .find((found) => found !== undefined);
  }
  if (step.kind !== 'member' || options.missing === 'is empty') return undefined;
  const isMissing = values.some((item) => isObject(item) && options.next(item).length === 0);
  return isMissing ? `${step.name} is not found` : undefined;
}

/** The reason why client-go refuses a slice of a value. */
function sliceProblem(slice: JsonPathSlice, value: JsonValue): string | undefined {
  if (value === null) return undefined;
  if (!Array.isArray(value)) return `${goType(value)} is not array or slice`;
  const { length } = value;
  const start = slice.start < 0 ? slice.start + length : slice.start;
  const written = slice.isOne ? slice.start + 1 : (slice.end ?? length);
  const end = written < 0 || (written === 0 && slice.isOne) ? written + length : written;
  if (start === end) return undefined;
  const outside = (index: number) => `array index out of bounds: index ${index}, length ${length}`;
  if (start < 0 || start >= length) return outside(start);
  if (end < 0 || end > length) return outside(end - 1);
  if (start > end) return `starting index ${start} is greater than ending index ${end}`;
  return undefined;
}

function goType(value: JsonValue): string {
  if (isObject(value)) return 'map[string]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return typeof value === 'boolean' ? 'bool' : 'string';
}

/** Formats a value in the output of a template: strings unchanged, other values as Go's JSON. */
export function valueText(value: JsonValue): string {
  return typeof value === 'string' ? value : compactJson(value);
}
