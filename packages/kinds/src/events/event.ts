import {
  type ApiObject,
  appendAll,
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
  qualifiedName,
  required,
  ruleErrors,
  validateObjectMeta,
} from '@wheelhouse/machinery';
import { age, at, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { Event } from '../gen/types/core/v1.ts';
import type { ColumnDef, ResourceDef, StorageDef, Stored } from '../resource-def.ts';
import { sameOrAbsent, sameOrEmpty } from '../rules/checks.ts';

/**
 * Events are stored once, in the form of core `v1`; the `events` group serves the same objects in
 * another form (EVENT-1).
 */

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
  if (isUnset(event.series?.lastObservedTime)) errors.push(required('series.lastObservedTime'));
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

const hasSeries = (event: Stored<Event>) => !isUnset(event.series);

/** Whether a time or struct is absent; null encodes a zero time. */
const isUnset = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || value === '';

const firstSeen = (event: Stored<Event>, nowMs: number) =>
  age((event.firstTimestamp ?? '') || (event.eventTime ?? ''), nowMs);

/** Columns computed from the stored form. */
const eventColumns: readonly ColumnDef[] = [
  column('Last Seen', lastSeen, { description: 'Time since it was last observed.' }),
  column('Type', (event) => textAt(event, 'type'), { description: 'Normal or Warning.' }),
  column('Reason', (event) => textAt(event, 'reason'), { description: 'Reason of the event.' }),
  column('Object', target, { description: 'Object that the event concerns.' }),
  column('Subobject', (event) => textAt(event, 'involvedObject', 'fieldPath'), {
    priority: 1,
    description: 'Field of the object that the event concerns.',
  }),
  column('Source', sourceText, { priority: 1, description: 'Component that reported the event.' }),
  column('Message', (event) => textAt(event, 'message').trim(), {
    description: 'Description of the event.',
  }),
  column('First Seen', firstSeen, {
    priority: 1,
    description: 'Time since it was first observed.',
  }),
  column('Count', occurrences, { priority: 1, description: 'Number of occurrences.' }),
  column('Name', nameColumn.cell, {
    format: 'name',
    priority: 1,
    description: 'Name of the event.',
  }),
];

const referenceFields = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
];

/** The storage and the selectable fields of both kinds of Event. */
const eventStorage: StorageDef = {
  prefix: '/registry/events/',
  apiVersion: 'v1',
  kind: 'Event',
  fieldsOf: (event) => ({
    ...Object.fromEntries(
      referenceFields.map((name) => [
        `involvedObject.${name}`,
        textAt(event, 'involvedObject', name),
      ]),
    ),
    reason: textAt(event, 'reason'),
    reportingComponent: textAt(event, 'reportingComponent'),
    source: textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
    type: textAt(event, 'type'),
  }),
};

/** Event of the core group: an occurrence that a component reports about an object. */
export function coreEvent(dialect: Dialect): ResourceDef {
  const validate = (object: Stored<Event>) =>
    validateEvent(object, { dialect, controllerField: 'reportingComponent' });
  return defineKind<Event>({
    dialect,
    facts: 'core',
    kind: 'Event',
    scope: 'Namespaced',
    shortNames: ['ev'],
    versions: [{ version: 'v1', columns: eventColumns }],
    storage: eventStorage,
    strategy: {
      validateName: pathSegment,
      reportsMetadataLast: true,
      extraMetadataChecks: { '': [] },
      standardFinalizers: undefined,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
      allowCreateOnUpdate: true,
      defaultPropagation: 'unsupported',
    },
    example: () => ({
      metadata: { name: 'example.1', namespace: 'default' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'example' },
      reason: 'Started',
      message: 'Started container',
      source: { component: 'kubelet', host: 'node-1' },
      firstTimestamp: '2030-01-01T00:00:00Z',
      lastTimestamp: '2030-01-01T00:00:00Z',
      count: 1,
      type: 'Normal',
    }),
  });
}

/**
 * Validates an Event of either group. An Event without `eventTime` has the old format, with few
 * rules.
 * @param options.controllerField field of the reporting controller in the request's version
 */
export function validateEvent(
  event: Stored<Event>,
  options: { dialect: Dialect; controllerField: string },
): FieldError[] {
  const namespace = event.metadata.namespace ?? '';
  const regarding = event.involvedObject?.namespace ?? '';
  const errors: FieldError[] = [];
  const isNew = !isUnset(event.eventTime);
  const clusterWide = isNew
    ? ['default', options.dialect.systemNamespace('system')]
    : ['', 'default'];
  const hasNamespaceOfObject =
    regarding === '' ? clusterWide.includes(namespace) : isNew || regarding === namespace;
  if (!hasNamespaceOfObject) {
    const detail = 'does not match event.namespace';
    errors.push(invalid('involvedObject.namespace', regarding, detail));
  }
  if (isNew) appendAll(errors, validateNewFields(event, options.controllerField));
  return [...errors, ...ruleErrors('namespace', namespace, dnsSubdomain)];
}

/** Maximum length of `action`, `reason`, and `reportingInstance`, in bytes. */
const wordLengthMax = 128;
const noteLengthMax = 1024;

function validateNewFields(event: Stored<Event>, controllerField: string): FieldError[] {
  const controller = event.reportingComponent ?? '';
  const errors: FieldError[] = [];
  if (controller === '') errors.push(required(controllerField));
  appendAll(errors, ruleErrors(controllerField, controller, qualifiedName));
  for (const name of ['reportingInstance', 'action', 'reason'] as const) {
    const value = event[name] ?? '';
    if (value === '') errors.push(required(name));
    appendAll(errors, tooManyCharacters(name, value, wordLengthMax));
  }
  return [...errors, ...tooManyCharacters('message', event.message ?? '', noteLengthMax)];
}

function tooManyCharacters(field: string, value: string, max: number): FieldError[] {
  if (Buffer.byteLength(value) <= max) return [];
  return [invalid(field, '', `can have at most ${max} characters`)];
}

function lastSeen(event: Stored<Event>, nowMs: number): string {
  if (hasSeries(event)) return age(event.series?.lastObservedTime ?? '', nowMs);
  const last = event.lastTimestamp ?? '';
  return last === '' ? firstSeen(event, nowMs) : age(last, nowMs);
}

function target(event: Stored<Event>): string {
  const kind = (event.involvedObject?.kind ?? '').toLowerCase();
  const name = event.involvedObject?.name ?? '';
  return name === '' ? kind : `${kind}/${name}`;
}

function sourceText(event: Stored<Event>): string {
  const component = (event.source?.component ?? '') || (event.reportingComponent ?? '');
  const host = (event.source?.host ?? '') || (event.reportingInstance ?? '');
  return host === '' ? component : `${component}, ${host}`;
}

function occurrences(event: Stored<Event>): number {
  return hasSeries(event) ? (event.series?.count ?? 0) : (event.count ?? 0) || 1;
}

/** Field labels of the `events` group: label -> stored label. */
export const eventsGroupLabels: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    referenceFields.map((name) => [`regarding.${name}`, `involvedObject.${name}`]),
  ),
  reason: 'reason',
  reportingController: 'reportingComponent',
  type: 'type',
};
