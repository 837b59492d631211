import { isObject, type JsonObject, type JsonValue, setMember } from '../../base/json.ts';
import { encodeJson } from '../../codec/json.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { fetchTarget, listObjects, selectionFlags, selectTargets } from '../selection.ts';
import type { Session } from '../session.ts';
import { alignLines, humanDuration } from '../table.ts';

export const describeCommand: Command = {
  name: 'describe',
  completes: 'objects',
  summary: 'Show details of a specific resource or group of resources',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME ... | -f FILENAME)',
  flags: [
    ...selectionFlags,
    { name: 'show-events', type: 'boolean', help: 'Show the events of the objects (default)' },
  ],
  async run(session, args) {
    const texts: string[] = [];
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const whole = { kind: target.resource.kind, ...object };
        const events = session.flags.boolean('show-events', true)
          ? await eventsText(session, whole)
          : '';
        texts.push(describeObject(whole) + events);
      }
    }
    if (texts.length === 0) throw new CliError('No resources found');
    session.io.out(texts.join('\n\n'));
    return 0;
  },
};

/** All fields of an object as indented text, metadata's best known ones first. */
export function describeObject(object: JsonObject): string {
  const { apiVersion, kind, metadata: _, ...rest } = object;
  const metadata = objectAt(object, 'metadata');
  const { name, namespace, labels, annotations, managedFields: __, ...meta } = metadata;
  const lines: string[][] = [
    ['Name:', String(name ?? '')],
    ...(namespace === undefined ? [] : [['Namespace:', String(namespace)]]),
    ...pairLines('Labels:', labels, '='),
    ...pairLines('Annotations:', annotations, ': '),
    ['API Version:', String(apiVersion ?? '')],
    ['Kind:', String(kind ?? '')],
  ];
  const shown = kind === 'Secret' ? { ...rest, data: sizesOf(objectAt(object, 'data')) } : rest;
  const nested = [...fieldLines({ metadata: meta }, 0), ...fieldLines(shown, 0)];
  return `${alignFields(lines)}${nested.join('')}`;
}

/** A Secret's values stay off the screen; only how long they are is told. */
function sizesOf(data: JsonObject): JsonObject {
  const sizes: JsonObject = {};
  for (const key of Object.keys(data)) {
    const length = Buffer.from(String(data[key]), 'base64').length;
    setMember(sizes, key, `${length} bytes`);
  }
  return sizes;
}

function pairLines(title: string, value: JsonValue | undefined, between: string): string[][] {
  if (!isObject(value) || Object.keys(value).length === 0) return [[title, '<none>']];
  return Object.keys(value)
    .sort()
    .map((key, at) => [at === 0 ? title : '', `${key}${between}${String(value[key])}`]);
}

function alignFields(lines: readonly string[][]): string {
  const width = Math.max(...lines.map((line) => line[0]!.length)) + 2;
  return lines.map(([title, value]) => `${title!.padEnd(width)}${value}\n`).join('');
}

/** `creationTimestamp` -> `Creation Timestamp`; `uid` is all capitals. */
function titleOf(name: string): string {
  if (name === 'uid') return 'UID';
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

const depthMax = 100;

function fieldLines(object: JsonObject, depth: number): string[] {
  const indent = '  '.repeat(depth);
  if (depth > depthMax) return [`${indent}…\n`];
  return Object.keys(object)
    .sort()
    .flatMap((name) => {
      const value = object[name];
      const title = `${indent}${titleOf(name)}:`;
      if (value === undefined || value === null) return [];
      if (isObject(value)) return [`${title}\n`, ...fieldLines(value, depth + 1)];
      if (Array.isArray(value)) return [`${title}\n`, ...value.flatMap(itemLines(depth + 1))];
      return [`${title}  ${String(value)}\n`];
    });
}

const itemLines = (depth: number) => (item: JsonValue) =>
  isObject(item)
    ? fieldLines(item, depth)
    : [`${'  '.repeat(depth)}${encodeJson(item).toString()}\n`];

async function eventsText(session: Session, object: JsonObject): Promise<string> {
  const { resources } = await session.discovery();
  const resource = resources.find((one) => one.kind === 'Event' && one.group === '');
  if (resource === undefined) return '';
  const selector = [
    `involvedObject.name=${nameOf(object)}`,
    `involvedObject.uid=${textAt(object, 'metadata', 'uid')}`,
  ];
  const target = { resource, namespace: namespaceOf(object), name: undefined };
  let events: JsonObject[];
  try {
    events = await listObjects(session.client, target, { fieldSelector: selector.join(',') });
  } catch {
    return '';
  }
  if (events.length === 0) return 'Events:  <none>\n';
  const now = performance.timeOrigin + performance.now();
  const rows = events.map((event) => [
    `  ${textAt(event, 'type')}`,
    textAt(event, 'reason'),
    ageText(event, now),
    textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
    textAt(event, 'message'),
  ]);
  const head = ['  Type', 'Reason', 'Age', 'From', 'Message'];
  const rule = head.map((title) => title.replace(/\S/g, '-'));
  return `Events:\n${alignLines([head, rule, ...rows])}`;
}

function ageText(event: JsonObject, now: number): string {
  const [time] = [textAt(event, 'lastTimestamp'), textAt(event, 'eventTime')].filter(Boolean);
  return time === undefined ? '<unknown>' : humanDuration(now - Date.parse(time));
}

/** Whether an object says of itself that a condition holds. */
export function conditionsOf(object: JsonObject): JsonObject[] {
  return listAt(object, 'status', 'conditions');
}
