import { encodeJson } from '@wheelhouse/codec';
import { rulesOf } from '@wheelhouse/kinds';
import {
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { ruleHeads, ruleRows } from '../rbac/rule-table.ts';
import { withoutControls } from '../terminal.ts';
import { certificateDescribers } from './certificates.ts';
import { clusterDescribers } from './cluster.ts';
import { jobDescribers } from './jobs.ts';
import { annotationTexts } from './metadata.ts';
import { networkDescribers } from './network.ts';
import type { RelatedDescriber } from './related.ts';
import { scalingDescribers } from './scaling.ts';
import { serviceDescribers } from './services.ts';
import { storageDescribers } from './storage.ts';
import { workloadDescribers } from './workloads.ts';

/** A line of a description: a text, or a title with its value. */
export type DescriptionLine = readonly [text: string, value?: string];

/**
 * Formats lines like kubectl, aligning the values of consecutive titles. A text without a value, or
 * a value of several lines, ends a block. Control characters are shown, not sent to the terminal.
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
  return withoutControls(text);
}

/** Describes an object without its events. */
export function describeObject(object: JsonObject): DescriptionLine[] {
  return (specificDescriber(object) ?? describeAny)(object);
}

/**
 * The describer of a built-in kind with a format of its own that may read related objects;
 * undefined for other kinds.
 */
export function relatedDescriber(
  object: JsonObject,
  dialect: Dialect,
): RelatedDescriber | undefined {
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  const suffix = `.${dialect.groupSuffix}`;
  const stem = group.endsWith(suffix) ? group.slice(0, -suffix.length) : group;
  const kind = textAt(object, 'kind');
  const key = stem === '' ? kind : `${stem}/${kind}`;
  return Object.hasOwn(relatedDescribers, key) ? relatedDescribers[key] : undefined;
}

const relatedDescribers: Readonly<Record<string, RelatedDescriber>> = {
  ...workloadDescribers,
  ...jobDescribers,
  ...clusterDescribers,
  ...serviceDescribers,
  ...networkDescribers,
  ...storageDescribers,
  ...scalingDescribers,
  ...certificateDescribers,
};

/** Kinds whose descriptions include no events. */
const withoutEvents: ReadonlySet<string> = new Set([
  'LimitRange',
  'Namespace',
  'NetworkPolicy',
  'ResourceQuota',
]);

/** Whether the description of an object includes its events. */
export function hasEvents(object: JsonObject, dialect: Dialect): boolean {
  if (relatedDescriber(object, dialect) !== undefined)
    return !withoutEvents.has(textAt(object, 'kind'));
  const special = specificDescriber(object);
  return special === undefined || special === describeConfigMap;
}

function specificDescriber(object: JsonObject): Describer | undefined {
  const kind = textAt(object, 'kind');
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  // Custom kinds may have the same names.
  const isBuiltin = group === '' || group.startsWith('rbac.authorization.');
  return isBuiltin && Object.hasOwn(describers, kind) ? describers[kind] : undefined;
}

type Describer = (object: JsonObject) => DescriptionLine[];

/** Kinds for which kubectl has a format of their own. */
const describers: Readonly<Record<string, Describer>> = {
  ConfigMap: describeConfigMap,
  Secret: describeSecret,
  Role: describeRole,
  ClusterRole: describeRole,
  RoleBinding: describeBinding,
  ClusterRoleBinding: describeBinding,
};

function head(object: JsonObject, options: { namespace: boolean }): DescriptionLine[] {
  const labels = objectAt(object, 'metadata', 'labels');
  const pairs = Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`);
  return [
    ['Name:', nameOf(object)],
    ...(options.namespace ? [['Namespace:', namespaceOf(object)] as const] : []),
    ...titledLines('Labels:', pairs),
    ...titledLines('Annotations:', annotationTexts(objectAt(object, 'metadata', 'annotations'))),
  ];
}

function titledLines(title: string, texts: readonly string[]): DescriptionLine[] {
  if (texts.length === 0) return [[title, '<none>']];
  return texts.map((text, at) => [at === 0 ? title : '', text]);
}

/** Describes any object: the main metadata, then all fields as indented text. */
function describeAny(object: JsonObject): DescriptionLine[] {
  const { metadata, ...rest } = object;
  const {
    name: _,
    namespace: __,
    labels: ___,
    annotations: ____,
    managedFields: _____,
    ...meta
  } = isObject(metadata) ? metadata : {};
  return [...head(object, { namespace: true }), ...fieldLines({ ...rest, metadata: meta }, 0)];
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
      if (value === undefined) return [];
      if (value === null) return [[title, '<nil>']];
      if (isObject(value)) return [[title], ...fieldLines(value, depth + 1)];
      if (Array.isArray(value)) return [[title], ...value.flatMap(itemLines(depth + 1))];
      return [[title, String(value)]];
    });
}

/** Parts of titles that kubectl writes in capitals. */
const acronyms: ReadonlySet<string> = new Set(['API', 'URL', 'UID', 'OSB', 'GUID']);

/**
 * The title of a field: `creationTimestamp` becomes `Creation Timestamp`, `uid` becomes `UID`. Names
 * with other characters than letters and dashes remain as they are.
 */
function titleOf(name: string): string {
  if (/[^\p{L}-]/u.test(name)) return name;
  const parts = name.match(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|[^\p{Lu}\p{Ll}]+/gu) ?? [];
  return parts
    .map((part) => {
      const capitals = part.toUpperCase();
      return acronyms.has(capitals) ? capitals : `${part.charAt(0).toUpperCase()}${part.slice(1)}`;
    })
    .join(' ');
}

const itemLines =
  (depth: number) =>
  (item: JsonValue): DescriptionLine[] => {
    if (isObject(item)) return fieldLines(item, depth);
    const text = typeof item === 'string' ? item : encodeJson(item).toString();
    return [[`${'  '.repeat(depth)}${text}`]];
  };

const sizeText = (value: JsonValue | undefined): string =>
  `${Buffer.from(String(value), 'base64').length} bytes`;

function describeConfigMap(object: JsonObject): DescriptionLine[] {
  const data = objectAt(object, 'data');
  const binary = objectAt(object, 'binaryData');
  const shown = Object.keys(data)
    .sort()
    .flatMap((key): DescriptionLine[] => [[`${key}:`], ['----'], [String(data[key])], ['']]);
  const sizes = Object.keys(binary)
    .sort()
    .map((key): DescriptionLine => [`${key}: ${sizeText(binary[key])}`]);
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

/** Describes a Secret with the sizes of its values instead of the values. */
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
      .map((key): DescriptionLine => [`${key}:`, sizeText(data[key])]),
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

/** A table with an indent of two and underlined headings. */
function columns([heads = [], ...rows]: readonly string[][]): DescriptionLine[] {
  const rule = heads.map((title) => '-'.repeat(title.length));
  const whole = [heads, rule, ...rows];
  const widths = heads.map((_, at) => Math.max(...whole.map((row) => (row[at] ?? '').length)) + 2);
  return whole.map((row) => {
    const cells = row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!)));
    return [`  ${cells.join('')}`];
  });
}
