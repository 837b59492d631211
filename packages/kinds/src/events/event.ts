import {
  type ApiObject,
  asApiObject,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  foregroundFinalizer,
  goQuoted,
  invalid,
  invalidGo,
  type JsonValue,
  type MetaRules,
  orphanFinalizer,
  pathSegment,
  required,
  validateObjectMeta,
} from '@wheelhouse/machinery';
import { at, textAt } from '../cells.ts';
import {
  eventColumns,
  eventStorage,
  eventsGroupLabels,
  isUnset,
  validateEvent,
} from '../core/event.ts';
import { defineKind } from '../define.ts';
import type { Event } from '../gen/types/core/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { sameOrAbsent, sameOrEmpty } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** Event of the `events` group, with stricter rules; errors contain the names of stored fields. */
export function event(dialect: Dialect): ResourceDef {
  const validate = (object: Stored<Event>) =>
    validateEvent(object, { dialect, controllerField: 'reportingController' });
  const metaRules: MetaRules = {
    namespaced: true,
    validateName: dnsSubdomain,
    path: 'metadata',
    standardFinalizers: new Set([orphanFinalizer, foregroundFinalizer, dialect.productName]),
  };
  return defineKind<Event>({
    dialect,
    facts: 'events',
    kind: 'Event',
    resource: 'events',
    scope: 'Namespaced',
    shortNames: ['ev'],
    versions: [
      {
        version: 'v1',
        toStorage,
        fromStorage,
        columns: eventColumns.map((eventColumn) => ({
          ...eventColumn,
          cell: (object, nowMs) => eventColumn.cell(toStorage(asApiObject(object)), nowMs),
        })),
        storedColumns: eventColumns,
      },
    ],
    storage: eventStorage,
    strategy: {
      validateName: pathSegment,
      reportsMetadataLast: true,
      errorGroup: '',
      validateCreate: (_, object) => [
        ...validate(object),
        ...validateObjectMeta(object.metadata, metaRules),
        ...validateCreate(object),
      ],
      validateUpdate: (_, object, old) => [...validate(object), ...validateUpdate(object, old)],
      allowCreateOnUpdate: true,
      defaultPropagation: 'unsupported',
      fieldLabels: { v1: eventsGroupLabels },
    },
    example: () => ({
      apiVersion: `${dialect.group('events')}/v1`,
      kind: 'Event',
      metadata: { name: 'example.2', namespace: 'default' },
      eventTime: '2030-01-01T00:00:00.000001Z',
      reportingController: 'example.com/controller',
      reportingInstance: 'controller-1',
      action: 'Starting',
      reason: 'Started',
      regarding: { kind: 'Pod', namespace: 'default', name: 'example' },
      note: 'Started container',
      type: 'Normal',
    }),
  });
}

/** Names in the `events` group and in the stored core form, in the order of the latter. */
const renamed: readonly (readonly [string, string])[] = [
  ['regarding', 'involvedObject'],
  ['reason', 'reason'],
  ['note', 'message'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
  ['type', 'type'],
  ['eventTime', 'eventTime'],
  ['series', 'series'],
  ['action', 'action'],
  ['related', 'related'],
  ['reportingController', 'reportingComponent'],
  ['reportingInstance', 'reportingInstance'],
];

const toStorage = (object: ApiObject) => rename(object, renamed);

function rename(object: ApiObject, pairs: readonly (readonly [string, string])[]): ApiObject {
  const renamedObject: ApiObject = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: object.metadata,
  };
  for (const [from, to] of pairs) {
    const value = at(object, from);
    if (value !== undefined) renamedObject[to] = value;
  }
  return renamedObject;
}

const renamedBack = renamed.map(([own, stored]) => [stored, own] as const);

/** Converts an Event from the core form; omits reporters that are empty there. */
function fromStorage(object: ApiObject): ApiObject {
  const event = rename(object, renamedBack);
  for (const name of ['reportingController', 'reportingInstance']) {
    if (event[name] === '') delete event[name];
  }
  return event;
}

/** Validates that a new Event has a time and a type, and no deprecated fields (EVENT-1). */
function validateCreate(event: Stored<Event>): FieldError[] {
  const errors = validateSeries(event);
  if (isUnset(event.eventTime)) errors.push(required('eventTime'));
  const type = event.type ?? '';
  if (type !== 'Normal' && type !== 'Warning') {
    errors.push(invalid('type', '', `has invalid value: ${type}`));
  }
  const refuse = (field: string) => errors.push(invalid(field, '', 'needs to be unset'));
  if (!isUnset(event.firstTimestamp)) refuse('firstTimestamp');
  if (!isUnset(event.lastTimestamp)) refuse('lastTimestamp');
  if ((event.count ?? 0) !== 0) refuse('count');
  const sourceText = (event.source?.component ?? '') + (event.source?.host ?? '');
  if (sourceText !== '') refuse('source');
  return errors;
}

function validateSeries(event: Stored<Event>): FieldError[] {
  if (isUnset(event.series)) return [];
  const errors: FieldError[] = [];
  if ((event.series?.count ?? 0) < 2) {
    errors.push(invalid('series.count', '', 'should be at least 2'));
  }
  if (isUnset(event.series?.lastObservedTime)) {
    errors.push(required('series.lastObservedTime'));
  }
  return errors;
}

const reference = (value: JsonValue | undefined) => {
  const part = (name: string) => goQuoted(textAt(value, name));
  return (
    `core.ObjectReference{Kind:${part('kind')}, Namespace:${part('namespace')}, ` +
    `Name:${part('name')}, UID:${part('uid')}, APIVersion:${part('apiVersion')}, ` +
    `ResourceVersion:${part('resourceVersion')}, FieldPath:${part('fieldPath')}}`
  );
};

const word = (value: JsonValue | undefined) => goQuoted(typeof value === 'string' ? value : '');

const source = (value: JsonValue | undefined) => {
  const part = (name: string) => goQuoted(textAt(value, name));
  return `core.EventSource{Component:${part('component')}, Host:${part('host')}}`;
};

const count = (value: JsonValue | undefined) => String(value ?? 0);

/**
 * Immutable fields and functions that print them as kube-apiserver does, which reports the reason
 * twice.
 */
const immutableFields: readonly (readonly [
  keyof Stored<Event>,
  (value: JsonValue | undefined) => string,
])[] = [
  ['involvedObject', reference],
  ['reason', word],
  ['message', word],
  ['source', source],
  ['firstTimestamp', time],
  ['lastTimestamp', time],
  ['count', count],
  ['reason', word],
  ['type', word],
  ['eventTime', time],
  ['action', word],
  ['related', (value) => (isUnset(value) ? '"null"' : reference(value))],
  ['reportingComponent', word],
  ['reportingInstance', word],
];

function validateUpdate(event: Stored<Event>, old: Stored<Event>): FieldError[] {
  const series = sameOrEmpty(event.series, old.series) ? [] : validateSeries(event);
  const changes = immutableFields.flatMap(([field, shown]) => {
    const isSame = field === 'related' ? sameOrAbsent : sameOrEmpty;
    if (isSame(event[field], old[field])) return [];
    const name = field === 'reportingComponent' ? 'reportingController' : field;
    return [invalidGo(name, () => shown(event[field]), 'field is immutable')];
  });
  return [...series, ...changes];
}

/** A time as Go prints it: `2030-01-01 00:00:00.5 +0000 UTC`. */
function time(value: JsonValue | undefined): string {
  if (typeof value !== 'string') return '0001-01-01 00:00:00 +0000 UTC';
  const [day = '', clock = ''] = value.replace('Z', '').split('T');
  return `${day} ${clock.includes('.') ? clock.replace(/\.?0+$/, '') : clock} +0000 UTC`;
}
