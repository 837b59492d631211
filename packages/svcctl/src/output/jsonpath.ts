import { isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { compactJson } from './pretty-json.ts';

/**
 * kubectl's JSONPath templates: text with `{…}` around paths; `.a.b`, `['a']`, `[0]`, `[1:3]`,
 * `[*]`, `..a`, `[?(@.a=="b")]`, quoted strings and `{range …}…{end}`. No scripts, no expressions.
 */
export type Template = readonly Node[];

type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'path'; readonly steps: readonly Step[] }
  | { readonly type: 'range'; readonly steps: readonly Step[]; readonly body: Template };

type Step =
  | { readonly type: 'member'; readonly name: string }
  | { readonly type: 'descend'; readonly name: string }
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'slice'; readonly from: number; readonly to: number | undefined }
  | { readonly type: 'all' }
  | { readonly type: 'filter'; readonly filter: Filter };

interface Filter {
  readonly steps: readonly Step[];
  readonly operator: string;
  readonly value: string | number | boolean | undefined;
}

const depthMax = 64;

/** Reads a template; throws CliError. */
export function parseTemplate(source: string): Template {
  const stack: { nodes: Node[]; steps: readonly Step[] }[] = [{ nodes: [], steps: [] }];
  for (let at = 0; at < source.length; ) {
    const open = source.indexOf('{', at);
    if (open !== at) {
      const end = open < 0 ? source.length : open;
      stack.at(-1)!.nodes.push({ type: 'text', text: source.slice(at, end) });
      at = end;
      continue;
    }
    const close = closing(source, open);
    parseAction(source.slice(open + 1, close).trim(), stack);
    at = close + 1;
  }
  if (stack.length !== 1) throw new CliError('unclosed range');
  return stack[0]!.nodes;
}

function parseAction(inside: string, stack: { nodes: Node[]; steps: readonly Step[] }[]): void {
  if (inside === 'end') {
    const ended = stack.length > 1 ? stack.pop() : undefined;
    if (ended === undefined) throw new CliError('not in range, nothing to end');
    stack.at(-1)!.nodes.push({ type: 'range', steps: ended.steps, body: ended.nodes });
  } else if (/^range[^\w-]/.test(inside)) {
    if (stack.length > depthMax) throw new CliError('nested too deeply');
    stack.push({ nodes: [], steps: parsePath(inside.slice('range'.length).trim()) });
  } else if (inside.startsWith('"') || inside.startsWith("'")) {
    stack.at(-1)!.nodes.push({ type: 'text', text: unquote(inside) });
  } else {
    stack.at(-1)!.nodes.push({ type: 'path', steps: parsePath(inside) });
  }
}

function closing(source: string, open: number): number {
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

/** Reads one path, with or without `$` and the first dot. */
export function parsePath(source: string): readonly Step[] {
  const steps: Step[] = [];
  let at = source.startsWith('$') || source.startsWith('@') ? 1 : 0;
  while (at < source.length) {
    const character = source[at]!;
    if (character === '[') {
      const close = closingBracket(source, at);
      steps.push(parseBracket(source.slice(at + 1, close).trim()));
      at = close + 1;
      continue;
    }
    const descend = source.startsWith('..', at);
    if (descend) at += 2;
    else if (character === '.') at += 1;
    const { name, end } = readName(source, at);
    at = end;
    if (name === '*') steps.push({ type: 'all' });
    else if (name !== '') steps.push({ type: descend ? 'descend' : 'member', name });
    else if (at < source.length && source[at] !== '[') {
      throw new CliError(`unrecognized path ${JSON.stringify(source)}`);
    }
  }
  return steps;
}

function readName(source: string, start: number): { name: string; end: number } {
  let name = '';
  let at = start;
  for (; at < source.length && source[at] !== '.' && source[at] !== '['; at++) {
    if (source[at] === '\\') at += 1;
    name += source[at] ?? '';
  }
  return { name, end: at };
}

function closingBracket(source: string, open: number): number {
  let depth = 0;
  let quote = '';
  for (let at = open; at < source.length; at++) {
    const character = source[at]!;
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '[') depth += 1;
    else if (character === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw new CliError('unterminated array');
}

function parseBracket(inside: string): Step {
  if (inside === '*') return { type: 'all' };
  if (inside.startsWith('?(') && inside.endsWith(')')) {
    return { type: 'filter', filter: parseFilter(inside.slice(2, -1).trim()) };
  }
  if (inside.startsWith("'") || inside.startsWith('"')) {
    return { type: 'member', name: unquote(inside) };
  }
  const slice = /^(-?\d*):(-?\d*)$/.exec(inside);
  if (slice !== null) {
    const to = slice[2] === '' ? undefined : Number(slice[2]);
    return { type: 'slice', from: Number(slice[1] ?? 0), to };
  }
  if (!/^-?\d+$/.test(inside)) throw new CliError(`invalid array index ${inside}`);
  return { type: 'index', index: Number(inside) };
}

function parseFilter(text: string): Filter {
  for (const operator of ['==', '!=', '<=', '>=', '<', '>']) {
    const at = text.indexOf(operator);
    if (at < 0) continue;
    const value = parseLiteral(text.slice(at + operator.length).trim());
    return { steps: parsePath(text.slice(0, at).trim()), operator, value };
  }
  return { steps: parsePath(text), operator: '', value: undefined };
}

function parseLiteral(text: string): string | number | boolean {
  if (text.startsWith('"') || text.startsWith("'")) return unquote(text);
  if (text === 'true' || text === 'false') return text === 'true';
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

/** All values a path leads to. */
export function selectPath(steps: readonly Step[], root: JsonValue): JsonValue[] {
  let values: JsonValue[] = [root];
  for (const step of steps) values = values.flatMap((value) => applyStep(step, value));
  return values;
}

function applyStep(step: Step, value: JsonValue): JsonValue[] {
  switch (step.type) {
    case 'member': {
      const found = isObject(value) ? member(value, step.name) : undefined;
      return found === undefined ? [] : [found];
    }
    case 'descend':
      return descend(step.name, value);
    case 'all':
      if (Array.isArray(value)) return value;
      return isObject(value) ? Object.values(value).filter((one) => one !== undefined) : [];
    case 'index': {
      const found = Array.isArray(value) ? value.at(step.index) : undefined;
      return found === undefined ? [] : [found];
    }
    case 'slice':
      return Array.isArray(value) ? value.slice(step.from, step.to) : [];
    case 'filter':
      return Array.isArray(value) ? value.filter((one) => passes(step.filter, one)) : [];
  }
}

function descend(name: string, value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value.flatMap((one) => descend(name, one));
  if (!isObject(value)) return [];
  const own = member(value, name);
  const below = Object.values(value).flatMap((one) =>
    one === undefined ? [] : descend(name, one),
  );
  return own === undefined ? below : [own, ...below];
}

function passes(filter: Filter, value: JsonValue): boolean {
  const [found] = selectPath(filter.steps, value);
  if (filter.operator === '') return found !== undefined;
  if (found === undefined || found === null || filter.value === undefined) return false;
  switch (filter.operator) {
    case '==':
      return found === filter.value;
    case '!=':
      return found !== filter.value;
    case '<':
      return found < filter.value;
    case '<=':
      return found <= filter.value;
    case '>':
      return found > filter.value;
    default:
      return found >= filter.value;
  }
}

/** Fills a template from a value. */
export function renderTemplate(template: Template, value: JsonValue): string {
  return template
    .map((node) => {
      if (node.type === 'text') return node.text;
      const found = selectPath(node.steps, value);
      if (node.type === 'path') return found.map(showValue).join(' ');
      return found.map((one) => renderTemplate(node.body, one)).join('');
    })
    .join('');
}

/** All values that the paths of a template lead to, one after another; its texts are left out. */
export function valuesOfTemplate(template: Template, value: JsonValue): JsonValue[] {
  return template.flatMap((node) => {
    if (node.type === 'text') return [];
    const found = selectPath(node.steps, value);
    if (node.type === 'path') return found;
    return found.flatMap((one) => valuesOfTemplate(node.body, one));
  });
}

/** The first member that a path of a template names and its object has not. */
export function missingKey(template: Template, value: JsonValue): string | undefined {
  for (const node of template) {
    if (node.type === 'text') continue;
    let values: JsonValue[] = [value];
    for (const step of node.steps) {
      const lacking = values.some((one) => isObject(one) && applyStep(step, one).length === 0);
      if (step.type === 'member' && lacking) return step.name;
      values = values.flatMap((one) => applyStep(step, one));
    }
    if (node.type !== 'range') continue;
    const missing = values
      .map((one) => missingKey(node.body, one))
      .find((one) => one !== undefined);
    if (missing !== undefined) return missing;
  }
  return undefined;
}

/** A value as templates print it: text as it is, the rest as Go's JSON. */
export function showValue(value: JsonValue): string {
  return typeof value === 'string' ? value : compactJson(value);
}
