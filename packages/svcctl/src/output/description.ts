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

/** Describes a Pod template in kubectl's format, with spaces and tabs. */
export function podTemplateText(template: JsonObject): string {
  const spec = objectAt(template, 'spec');
  const annotations = objectAt(template, 'metadata', 'annotations');
  const account = textAt(spec, 'serviceAccountName');
  const priority = textAt(spec, 'priorityClassName');
  const initial = listAt(spec, 'initContainers');
  const lines = [
    'Pod Template:',
    ...valuePairs('Labels', objectAt(template, 'metadata', 'labels'), '='),
    ...(Object.keys(annotations).length === 0 ? [] : valuePairs('Annotations', annotations, ': ')),
    ...(account === '' ? [] : [`  Service Account:\t${account}`]),
    ...(initial.length === 0 ? [] : containers('Init Containers', initial)),
    ...containers('Containers', listAt(spec, 'containers')),
    ...volumes(listAt(spec, 'volumes')),
    ...(priority === '' ? [] : [`  Priority Class Name:\t${priority}`]),
    ...valuePairs('Node-Selectors', objectAt(spec, 'nodeSelector'), '='),
    ...valueLines('Tolerations', listAt(spec, 'tolerations').map(tolerationText).sort()),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function valueLines(title: string, values: readonly string[]): string[] {
  if (values.length === 0) return [`  ${title}:\t<none>`];
  return values.map((value, at) => (at === 0 ? `  ${title}:\t${value}` : `\t${value}`));
}

const valuePairs = (title: string, map: JsonObject, separator: string): string[] =>
  valueLines(
    title,
    Object.keys(map)
      .sort()
      .map((key) => `${key}${separator}${String(member(map, key))}`),
  );

function containers(title: string, list: readonly JsonObject[]): string[] {
  return [
    `  ${title}:${list.length === 0 ? ' <none>' : ''}`,
    ...list.flatMap((container) => [
      `   ${textAt(container, 'name')}:`,
      ...containerLines(container),
    ]),
  ];
}

function containerLines(container: JsonObject): string[] {
  const resources = (title: string) => {
    const map = objectAt(container, 'resources', title.toLowerCase());
    const names = Object.keys(map).sort();
    if (names.length === 0) return [];
    return [`${title}:`, ...names.map((name) => `  ${name}:\t${String(map[name])}`)];
  };
  const probe = (title: string, name: string) =>
    isObject(container[name]) ? [`${title}:\t${probeText(objectAt(container, name))}`] : [];
  const lines = [
    `Image:\t${textAt(container, 'image')}`,
    ...portLines(container, 'Port', 'containerPort'),
    ...portLines(container, 'Host Port', 'hostPort'),
    ...wordLines(container, 'Command'),
    ...wordLines(container, 'Args'),
    ...resources('Limits'),
    ...resources('Requests'),
    ...probe('Liveness', 'livenessProbe'),
    ...probe('Readiness', 'readinessProbe'),
    ...probe('Startup', 'startupProbe'),
    ...environment(container),
    ...mounts(container),
  ];
  return lines.map((line) => `    ${line}`);
}

function portLines(container: JsonObject, title: string, name: string): string[] {
  const ports = listAt(container, 'ports').map(
    (port) => `${String(port[name] ?? 0)}/${textAt(port, 'protocol') || 'TCP'}`,
  );
  if (ports.length > 1) return [`${title}s:\t${ports.join(', ')}`];
  return [`${title}:\t${ports[0] ?? '<none>'}`];
}

function wordLines(container: JsonObject, title: string): string[] {
  const list = container[title.toLowerCase()];
  if (!Array.isArray(list) || list.length === 0) return [];
  return [
    `${title}:`,
    ...list.flatMap((word) => String(word).split('\n')).map((line) => `  ${line}`),
  ];
}

function probeText(probe: JsonObject): string {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  const number = (name: string) => String(probe[name] ?? 0);
  const times =
    `delay=${number('initialDelaySeconds')}s timeout=${number('timeoutSeconds')}s ` +
    `period=${number('periodSeconds')}s #success=${number('successThreshold')} ` +
    `#failure=${number('failureThreshold')}`;
  const target = (part: JsonObject) => `${textAt(part, 'host')}:${String(part['port'] ?? '')}`;
  if (isObject(exec)) {
    const command = Array.isArray(exec['command']) ? exec['command'] : [];
    return `exec [${command.map(String).join(' ')}] ${times}`;
  }
  if (isObject(httpGet)) {
    const scheme = textAt(httpGet, 'scheme').toLowerCase();
    return `http-get ${scheme}://${target(httpGet)}${textAt(httpGet, 'path')} ${times}`;
  }
  if (isObject(tcpSocket)) return `tcp-socket ${target(tcpSocket)} ${times}`;
  if (isObject(grpc))
    return `grpc <pod>:${String(grpc['port'])} ${textAt(grpc, 'service')} ${times}`;
  return `unknown ${times}`;
}

function environment(container: JsonObject): string[] {
  const from = listAt(container, 'envFrom').map((source) => {
    const kind = isObject(source['configMapRef']) ? 'ConfigMap' : 'Secret';
    const ref = objectAt(source, kind === 'ConfigMap' ? 'configMapRef' : 'secretRef');
    const prefix = textAt(source, 'prefix');
    const note = prefix === '' ? '' : ` with prefix '${prefix}'`;
    return `  ${textAt(ref, 'name')}\t${kind}${note}\tOptional: ${ref['optional'] === true}`;
  });
  const variables = listAt(container, 'env').map(
    (variable) => `  ${textAt(variable, 'name')}:\t${envValue(variable)}`,
  );
  return [
    ...(from.length === 0 ? [] : ['Environment Variables from:', ...from]),
    `Environment:${variables.length === 0 ? '\t<none>' : ''}`,
    ...variables,
  ];
}

function envValue(variable: JsonObject): string {
  const from = objectAt(variable, 'valueFrom');
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = from;
  if (isObject(fieldRef)) {
    return ` (${textAt(fieldRef, 'apiVersion')}:${textAt(fieldRef, 'fieldPath')})`;
  }
  if (isObject(resourceFieldRef)) return ` (${textAt(resourceFieldRef, 'resource')})`;
  const key = (ref: JsonObject, kind: string) =>
    `<set to the key '${textAt(ref, 'key')}' ${kind} '${textAt(ref, 'name')}'>` +
    `\tOptional: ${ref['optional'] === true}`;
  if (isObject(secretKeyRef)) return key(secretKeyRef, 'in secret');
  if (isObject(configMapKeyRef)) return key(configMapKeyRef, 'of config map');
  return textAt(variable, 'value').replaceAll('\n', '\n      \t');
}

function mounts(container: JsonObject): string[] {
  const lines = listAt(container, 'volumeMounts')
    .map((mount) => {
      const path = textAt(mount, 'subPath');
      const access = mount['readOnly'] === true ? 'ro' : 'rw';
      const flags = [access, ...(path === '' ? [] : [`path=${JSON.stringify(path)}`])];
      return `  ${textAt(mount, 'mountPath')} from ${textAt(mount, 'name')} (${flags.join(',')})`;
    })
    .sort();
  return [`Mounts:${lines.length === 0 ? '\t<none>' : ''}`, ...lines];
}

function volumes(list: readonly JsonObject[]): string[] {
  if (list.length === 0) return ['  Volumes:\t<none>'];
  return ['  Volumes:', ...list.flatMap(volumeLines)];
}

function volumeLines(volume: JsonObject): string[] {
  const { name: _, ...rest } = volume;
  const [type = ''] = Object.keys(rest);
  const fields = Object.entries(objectAt(volume, type)).filter(([, value]) => !isObject(value));
  return [
    `   ${textAt(volume, 'name')}:`,
    `    Type:\t${titleOf(type).replaceAll(' ', '')}`,
    ...fields.map(
      ([name, value]) =>
        `    ${titleOf(name).replaceAll(' ', '')}:\t` +
        (typeof value === 'object' ? JSON.stringify(value) : String(value)),
    ),
  ];
}

/** `key=value:NoSchedule op=Exists for 300s`. */
function tolerationText(toleration: JsonObject): string {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(toleration, name));
  const pair = value === '' ? key : `${key}=${value}`;
  const seconds = toleration['tolerationSeconds'];
  const exists = textAt(toleration, 'operator') === 'Exists';
  const isAll = exists && key === '';
  const operator = exists && value === '' && (key !== '' || effect !== '') ? ' op=Exists' : '';
  return [
    `${pair}${effect === '' ? '' : `:${effect}`}${isAll ? `${operator || 'op=Exists'}` : operator}`,
    ...(seconds === undefined ? [] : [`for ${String(seconds)}s`]),
  ].join(' ');
}

/** A line of a description: a text, or a title with its value. */
export type DescriptionLine = readonly [text: string, value?: string];

/**
 * Formats lines like kubectl, aligning the values of consecutive titles. A text without a value, or
 * a value of several lines, ends a block.
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

/** Describes an object without its events. */
export function describeObject(object: JsonObject): DescriptionLine[] {
  return (specificDescriber(object) ?? describeAny)(object);
}

/** Whether the description of an object includes its events. */
export function hasEvents(object: JsonObject): boolean {
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
  separator: string,
): DescriptionLine[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [[title, '<none>']];
  return Object.keys(value)
    .sort()
    .map((key, at) => [at === 0 ? title : '', `${key}${separator}${String(value[key])}`]);
}

/** Describes any object: the main metadata, then all fields as indented text. */
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

/** The title of a field: `creationTimestamp` becomes `Creation Timestamp`, `uid` becomes `UID`. */
function titleOf(name: string): string {
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
