import { rulesOf } from '@wheelhouse/kinds';
import {
  type Dialect,
  goPlain,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { ruleHeads, ruleRows } from '../rbac/rule-table.ts';
import { certificateDescribers } from './certificates.ts';
import { clusterDescribers } from './cluster.ts';
import { metadataLines } from './metadata.ts';
import { networkDescribers, serviceDescribers } from './network.ts';
import type { RelatedDescriber } from './related.ts';
import { scalingDescribers } from './scaling.ts';
import { storageDescribers } from './storage.ts';
import { headLines } from './tabs.ts';
import { jobDescribers, workloadDescribers } from './workloads.ts';

/** How an object is described. */
interface Description {
  readonly describer: RelatedDescriber;
  /** Whether the description includes the events of the object. */
  readonly withEvents: boolean;
}

/** Returns how to describe an object: built-in kinds have formats of their own. */
export function descriptionFor(object: JsonObject, dialect: Dialect): Description {
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  const suffix = `.${dialect.groupSuffix}`;
  const stem = group.endsWith(suffix) ? group.slice(0, -suffix.length) : group;
  const kind = textAt(object, 'kind');
  const key = stem === '' ? kind : `${stem}/${kind}`;
  const describer = Object.hasOwn(describers, key) ? describers[key] : undefined;
  const withEvents = describer === undefined || !withoutEvents.has(kind);
  return { describer: describer ?? describeAny, withEvents };
}

/** The formats of built-in kinds, by kind, with the stem of the group. */
const describers: Readonly<Record<string, RelatedDescriber>> = {
  ...workloadDescribers,
  ...jobDescribers,
  ...clusterDescribers,
  ...serviceDescribers,
  ...networkDescribers,
  ...storageDescribers,
  ...scalingDescribers,
  ...certificateDescribers,
  ConfigMap: describeConfigMap,
  Secret: describeSecret,
  'rbac.authorization/Role': describeRole,
  'rbac.authorization/ClusterRole': describeRole,
  'rbac.authorization/RoleBinding': describeBinding,
  'rbac.authorization/ClusterRoleBinding': describeBinding,
};

/** Built-in kinds whose descriptions include no events. */
const withoutEvents: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'LimitRange',
  'Namespace',
  'NetworkPolicy',
  'ResourceQuota',
  'Role',
  'RoleBinding',
  'Secret',
]);

const namespacedHead = (object: JsonObject): string[] => [
  `Name:\t${nameOf(object)}`,
  `Namespace:\t${namespaceOf(object)}`,
  ...metadataLines(object),
];

/** Describes any object: the main metadata, then all fields as indented text. */
function describeAny(object: JsonObject): string[] {
  const { metadata, ...rest } = object;
  const {
    name: _,
    namespace: __,
    labels: ___,
    annotations: ____,
    managedFields: _____,
    ...meta
  } = isObject(metadata) ? metadata : {};
  return [...namespacedHead(object), ...fieldLines({ ...rest, metadata: meta }, 0)];
}

const depthMax = 100;

function fieldLines(object: JsonObject, depth: number): string[] {
  const indent = '  '.repeat(depth);
  if (depth > depthMax) return [`${indent}…`];
  return Object.keys(object)
    .sort()
    .flatMap((name) => {
      const value = member(object, name);
      const title = `${indent}${titleOf(name)}:`;
      if (value === undefined) return [];
      if (isObject(value)) return [title, ...fieldLines(value, depth + 1)];
      if (Array.isArray(value)) return [title, ...value.flatMap(itemLines(depth + 1))];
      return [`${title}\t${goPlain(value)}`];
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
  (item: JsonValue): string[] =>
    isObject(item) ? fieldLines(item, depth) : [`${'  '.repeat(depth)}${goPlain(item)}`];

const sizeText = (value: JsonValue | undefined): string =>
  `${Buffer.from(String(value), 'base64').length} bytes`;

function describeConfigMap(object: JsonObject): string[] {
  const data = objectAt(object, 'data');
  const binary = objectAt(object, 'binaryData');
  const shown = Object.keys(data)
    .sort()
    .flatMap((key) => [`${key}:`, '----', String(data[key]), '']);
  const sizes = Object.keys(binary)
    .sort()
    .map((key) => `${key}: ${sizeText(binary[key])}`);
  const titles = (title: string) => ['', title, '===='];
  return [
    ...namespacedHead(object),
    ...titles('Data'),
    ...shown,
    ...titles('BinaryData'),
    ...sizes,
    '',
  ];
}

/** Describes a Secret with the sizes of its values instead of the values, except a token. */
function describeSecret(object: JsonObject): string[] {
  const [data, type] = [objectAt(object, 'data'), textAt(object, 'type')];
  const isToken = type.endsWith('/service-account-token');
  return [
    ...namespacedHead(object),
    '',
    `Type:\t${type}`,
    '',
    'Data',
    '====',
    ...Object.keys(data)
      .sort()
      .map((key) => {
        const value = data[key];
        if (key !== 'token' || !isToken) return `${key}:\t${sizeText(value)}`;
        return `${key}:\t${Buffer.from(String(value), 'base64').toString()}`;
      }),
  ];
}

function describeRole(object: JsonObject): string[] {
  return [
    `Name:\t${nameOf(object)}`,
    ...metadataLines(object),
    'PolicyRule:',
    ...headLines(ruleHeads, '  '),
    ...ruleRows(rulesOf(object)).map((row) => `  ${row.join('\t')}`),
  ];
}

function describeBinding(object: JsonObject): string[] {
  const subjects = listAt(object, 'subjects').map((subject) =>
    ['kind', 'name', 'namespace'].map((name) => textAt(subject, name)).join('\t'),
  );
  return [
    `Name:\t${nameOf(object)}`,
    ...metadataLines(object),
    'Role:',
    `  Kind:\t${textAt(object, 'roleRef', 'kind')}`,
    `  Name:\t${textAt(object, 'roleRef', 'name')}`,
    'Subjects:',
    ...headLines(['Kind', 'Name', 'Namespace'], '  '),
    ...subjects.map((subject) => `  ${subject}`),
  ];
}
