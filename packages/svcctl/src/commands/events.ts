import { statusError } from '@wheelhouse/client';
import { apiVersionOf, humanDuration, isObject, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { NoResourceError } from '../errors.ts';
import { CliError } from '../io.ts';
import { namespaceOf, textAt } from '../objects.ts';
import { outputFlags, printerOf } from '../output/output.ts';
import { alignLines, noHeadersFlag } from '../output/table.ts';
import {
  allNamespacesFlag,
  chunkSizeFlag,
  listObjects,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { watch } from '../watch.ts';

/**
 * Prints events in the order of their last occurrence. `--watch` prints existing and then new ones,
 * until `--request-timeout`.
 */
export const eventsCommand: Command = {
  name: 'events',
  summary: 'List events',
  usage: '[--for TYPE/NAME] [--types=Normal,Warning] [--watch]',
  flags: [
    ...outputFlags,
    allNamespacesFlag,
    { name: 'for', type: 'text', help: 'Only events of this object: TYPE/NAME' },
    { name: 'types', type: 'items', help: 'Only events of these types: Normal, Warning' },
    { name: 'watch', short: 'w', type: 'boolean', help: 'Watch after listing' },
    noHeadersFlag,
    chunkSizeFlag,
  ],
  async run(session) {
    const { flags, io } = session;
    const types = parseTypes(session);
    const fieldSelector = await selectorFor(session, flags.text('for') ?? '');
    const everywhere = flags.boolean('all-namespaces');
    const resource = (await session.mapper()).byKind('v1', 'Event');
    if (resource === undefined) throw new CliError('the server does not serve events');
    const namespace = everywhere ? '' : session.namespace;
    const target: Target = { resource, namespace, name: undefined };
    const matchesType = (event: JsonObject) =>
      types.size === 0 || types.has(textAt(event, 'type').toLowerCase());
    const printer = printerOf(session);
    if (flags.boolean('watch')) {
      await followNewEvents(session, { target, fieldSelector, matchesType });
      return 0;
    }
    const items = (await listObjects(session.client, target, { fieldSelector }))
      .filter(matchesType)
      .sort((left, right) => timeOf(left) - timeOf(right));
    if (items.length === 0) {
      io.err(everywhere ? 'No events found.\n' : `No events found in ${namespace} namespace.\n`);
      return 0;
    }
    const list = { apiVersion: 'v1', items, kind: 'EventList', metadata: {} };
    io.out(printer === undefined ? eventTable(session)(items) : printer(list));
    return 0;
  },
};

/** The types of `--types` in lower case; empty for all. Throws CliError. */
function parseTypes({ flags }: Session): ReadonlySet<string> {
  const types = flags.list('types');
  const lowerCase = new Set(types.map((type) => type.toLowerCase()));
  if ([...lowerCase].every((type) => type === 'normal' || type === 'warning')) return lowerCase;
  throw new CliError('valid --types are Normal or Warning');
}

/** The field selector for events of the object `TYPE/NAME`; undefined for all events. */
async function selectorFor(session: Session, object: string): Promise<string | undefined> {
  if (object === '') return undefined;
  const [type = '', name, ...more] = object.split('/');
  if (name === undefined) throw new CliError('--for must be in resource/name form');
  if (more.length > 0) {
    throw new CliError('arguments in resource/name form may not have more than one slash');
  }
  const [word = '', ...group] = type.toLowerCase().split('.');
  const resource = (await session.mapper()).byName(type.toLowerCase());
  if (resource === undefined) throw new NoResourceError({ resource: word, group: group.join('.') });
  return [
    `involvedObject.kind=${resource.kind}`,
    `involvedObject.apiVersion=${apiVersionOf(resource)}`,
    `involvedObject.name=${name}`,
  ].join(',');
}

interface EventWatch {
  readonly target: Target;
  readonly fieldSelector: string | undefined;
  readonly matchesType: (event: JsonObject) => boolean;
}

/** Prints existing and new events, but not deletions, until `--request-timeout` expires. */
async function followNewEvents(session: Session, eventWatch: EventWatch): Promise<void> {
  const { target, fieldSelector, matchesType } = eventWatch;
  const printer = printerOf(session);
  const table = eventTable(session);
  const deadline = session.deadline(session.requestTimeoutMs || undefined);
  const request = { path: targetPath(target), query: { fieldSelector }, signal: deadline.signal };
  try {
    for await (const { type, object } of watch(session, request)) {
      if (type === 'ERROR') throw statusError(object);
      if (type === 'DELETED' || type === 'BOOKMARK' || !matchesType(object)) continue;
      session.io.out(printer === undefined ? table([object]) : printer(object));
    }
  } catch (error) {
    if (!deadline.isOver()) throw error;
  }
}

/** Returns a function that formats rows of events, with the headings before the first ones. */
function eventTable(session: Session): (events: readonly JsonObject[]) => string {
  const widths: number[] = [];
  const withNamespace = session.flags.boolean('all-namespaces');
  let heads = session.flags.boolean('no-headers')
    ? []
    : [[...(withNamespace ? ['NAMESPACE'] : []), ...headings]];
  return (events) => {
    const rows = events.map((event) => [
      ...(withNamespace ? [namespaceOf(event)] : []),
      ...cellsOf(event, session.clock.now()),
    ]);
    const text = alignLines([...heads, ...rows], widths);
    heads = [];
    return text;
  };
}

const headings = ['LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'];

function cellsOf(event: JsonObject, nowMs: number): string[] {
  const { involvedObject } = event;
  const object = isObject(involvedObject) ? involvedObject : {};
  return [
    lastSeen(event, nowMs),
    textAt(event, 'type'),
    textAt(event, 'reason'),
    `${textAt(object, 'kind')}/${textAt(object, 'name')}`,
    textAt(event, 'message').trim(),
  ];
}

/**
 * When an event was last seen, and how often since when: `5s`, `5s (x3 over 2m)`.
 * @param nowMs the current time, in milliseconds since 1970
 */
export function lastSeen(event: JsonObject, nowMs: number): string {
  const age = (time: string) =>
    time === '' ? '<unknown>' : humanDuration(nowMs - Date.parse(time));
  const first = age(textAt(event, 'eventTime') || textAt(event, 'firstTimestamp'));
  const { series, count } = event;
  if (isObject(series)) {
    const last = age(textAt(series, 'lastObservedTime'));
    return `${last} (x${String(series['count'] ?? 0)} over ${first})`;
  }
  if (typeof count === 'number' && count > 1) {
    return `${age(textAt(event, 'lastTimestamp'))} (x${count} over ${first})`;
  }
  return first;
}

/** The time of an event's last occurrence in milliseconds; 0 if unknown. */
function timeOf(event: JsonObject): number {
  const times = [
    textAt(event, 'series', 'lastObservedTime'),
    textAt(event, 'lastTimestamp'),
    textAt(event, 'eventTime'),
  ];
  return Date.parse(times.find((time) => time !== '') ?? '') || 0;
}
