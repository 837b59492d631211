import { encodeJson } from '@wheelhouse/codec';
import { rulesOf } from '@wheelhouse/kinds';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { listAt, objectAt, textAt } from '../objects.ts';
import { ruleHeads, ruleRows } from '../rbac/rule-table.ts';

/** A line of a description: text alone, or a title with its value. */
export type DescriptionLine = readonly [text: string, value?: string];

/**
 * Writes lines the way kubectl does: values of titles that follow each other stand below each other,
 * and text alone, or a value of several lines, begins anew.
 */
export function writeDescription(lines: readonly DescriptionLine[]): string {
  let text = '';
  let block: [string, string][] = [];
  const flush = (): void => {
    const width = Math.max(...block.map(([title]) => title.length)) + 2;
    text += block.map(([title, value]) => `${title.padEnd(width)}${value}\n`).join('');
    block = [];
  };
  for (const [title, value] of lines) {
    if (value !== undefined) block.push([title, value]);
    if (value === undefined || value.includes('\n')) flush();
    if (value === undefined) text += `${title}\n`;
  }
  flush();
  return text;
}

/** What there is to say of an object besides its events. */
export function describeObject(object: JsonObject): DescriptionLine[] {
  return (specialOf(object) ?? describeAny)(object);
}

/** Whether the events of an object belong to what is told of it. */
export function hasEvents(object: JsonObject): boolean {
  const special = specialOf(object);
  return special === undefined || special === describeConfigMap;
}

function specialOf(object: JsonObject): Describe | undefined {
  const kind = textAt(object, 'kind');
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  // A custom kind of the same name has fields of its own.
  const isBuiltin = group === '' || group.startsWith('rbac.authorization.');
  return isBuiltin && Object.hasOwn(specials, kind) ? specials[kind] : undefined;
}

type Describe = (object: JsonObject) => DescriptionLine[];

/** Kinds whose users know another picture of them. */
const specials: Readonly<Record<string, Describe>> = {
  ConfigMap: describeConfigMap,
  Secret: describeSecret,
  Role: describeRole,
  ClusterRole: describeRole,
  RoleBinding: describeBinding,
  ClusterRoleBinding: describeBinding,
};

function head(object: JsonObject, options: { namespace: boolean }): DescriptionLine[] {
  const { name, namespace, labels, annotations } = objectAt(object, 'metadata');
  return [
    ['Name:', String(name ?? '')],
    ...(namespace === undefined || !options.namespace
      ? []
      : [['Namespace:', String(namespace)] as const]),
    ...pairLines('Labels:', labels, '='),
    ...pairLines('Annotations:', annotations, ': '),
  ];
}

function pairLines(
  title: string,
  value: JsonValue | undefined,
  between: string,
): DescriptionLine[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [[title, '<none>']];
  return Object.keys(value)
    .sort()
    .map((key, at) => [at === 0 ? title : '', `${key}${between}${String(value[key])}`]);
}

/** All fields of an object as indented text, metadata's best known ones first. */
function describeAny(object: JsonObject): DescriptionLine[] {
  const { apiVersion, kind, metadata, ...rest } = object;
  const {
    name: _,
    namespace: __,
    labels: ___,
    annotations: ____,
    managedFields: _____,
    ...meta
  } = isObject(metadata) ? metadata : {};
  return [
    ...head(object, { namespace: true }),
    ['API Version:', String(apiVersion ?? '')],
    ['Kind:', String(kind ?? '')],
    ...fieldLines({ metadata: meta }, 0),
    ...fieldLines(rest, 0),
  ];
}

/** `creationTimestamp` -> `Creation Timestamp`; `uid` is all capitals. */
export function titleOf(name: string): string {
  if (name === 'uid') return 'UID';
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

const depthMax = 100;

function fieldLines(object: JsonObject, depth: number): DescriptionLine[] {
  const indent = '  '.repeat(depth);
  if (depth > depthMax) return [[`${indent}…`]];
  return Object.keys(object)
    .sort()
    .flatMap((name): DescriptionLine[] => {
      const value = member(object, name);
      const title = `${indent}${titleOf(name)}:`;
      if (value === undefined || value === null) return [];
      if (isObject(value)) return [[title], ...fieldLines(value, depth + 1)];
      if (Array.isArray(value)) return [[title], ...value.flatMap(itemLines(depth + 1))];
      return [[title, String(value)]];
    });
}

const itemLines =
  (depth: number) =>
  (item: JsonValue): DescriptionLine[] => {
    if (isObject(item)) return fieldLines(item, depth);
    const text = typeof item === 'string' ? item : encodeJson(item).toString();
    return [[`${'  '.repeat(depth)}${text}`]];
  };

const bytesOf = (value: JsonValue | undefined): string =>
  `${Buffer.from(String(value), 'base64').length} bytes`;

function describeConfigMap(object: JsonObject): DescriptionLine[] {
  const data = objectAt(object, 'data');
  const binary = objectAt(object, 'binaryData');
  const shown = Object.keys(data)
    .sort()
    .flatMap((key): DescriptionLine[] => [[`${key}:`], ['----'], [String(data[key])], ['']]);
  const sizes = Object.keys(binary)
    .sort()
    .map((key): DescriptionLine => [`${key}: ${bytesOf(binary[key])}`]);
  const titles = (title: string): DescriptionLine[] => [[''], [title], ['====']];
  return [
    ...head(object, { namespace: true }),
    ...titles('Data'),
    ...shown,
    ...titles('BinaryData'),
    ...sizes,
    [''],
  ];
}

/** A Secret's values stay off the screen; only how long they are is told. */
function describeSecret(object: JsonObject): DescriptionLine[] {
  const data = objectAt(object, 'data');
  return [
    ...head(object, { namespace: true }),
    [''],
    ['Type:', textAt(object, 'type')],
    [''],
    ['Data'],
    ['===='],
    ...Object.keys(data)
      .sort()
      .map((key): DescriptionLine => [`${key}:`, bytesOf(data[key])]),
  ];
}

function describeRole(object: JsonObject): DescriptionLine[] {
  return [
    ...head(object, { namespace: false }),
    ['PolicyRule:'],
    ...columns([[...ruleHeads], ...ruleRows(rulesOf(object))]),
  ];
}

function describeBinding(object: JsonObject): DescriptionLine[] {
  const subjects = listAt(object, 'subjects').map((subject) =>
    ['kind', 'name', 'namespace'].map((name) => textAt(subject, name)),
  );
  return [
    ...head(object, { namespace: false }),
    ['Role:'],
    ['  Kind:', textAt(object, 'roleRef', 'kind')],
    ['  Name:', textAt(object, 'roleRef', 'name')],
    ['Subjects:'],
    ...columns([['Kind', 'Name', 'Namespace'], ...subjects]),
  ];
}

/** A table two blanks in, its heads underlined. */
function columns([heads = [], ...rows]: readonly string[][]): DescriptionLine[] {
  const rule = heads.map((title) => '-'.repeat(title.length));
  const whole = [heads, rule, ...rows];
  const widths = heads.map((_, at) => Math.max(...whole.map((row) => (row[at] ?? '').length)) + 2);
  return whole.map((row) => {
    const cells = row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!)));
    return [`  ${cells.join('')}`];
  });
}
