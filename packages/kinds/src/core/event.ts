import {
  appendAll,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  type JsonValue,
  pathSegment,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { age, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { Event } from '../gen/types/core/v1.ts';
import type { ColumnDef, ResourceDef, StorageDef } from '../resource-def.ts';
import type { Stored } from '../stored.ts';

/**
 * Events are stored once, in the form of core `v1`; the `events` group serves the same objects in
 * another form (EVENT-1). This file contains what both share, and the core kind.
 */

const hasSeries = (event: Stored<Event>) => !isUnset(event.series);

/** Whether a time or struct is absent; null encodes a zero time. */
export const isUnset = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || value === '';

const firstSeen = (event: Stored<Event>, nowMs: number) =>
  age((event.firstTimestamp ?? '') || (event.eventTime ?? ''), nowMs);

/** Columns computed from the stored form. */
export const eventColumns: readonly ColumnDef[] = [
  column('Last Seen', lastSeen, { description: 'Time since it was last observed.' }),
  column('Type', (event) => textAt(event, 'type'), { description: 'Normal or Warning.' }),
  column('Reason', (event) => textAt(event, 'reason'), { description: 'Reason of the event.' }),
  column('Object', target, { description: 'Object that the event concerns.' }),
  column('Subobject', (event) => textAt(event, 'involvedObject', 'fieldPath'), {
    priority: 1,
    description: 'Field of the object that the event concerns.',
  }),
  column('Source', source, { priority: 1, description: 'Component that reported the event.' }),
  column('Message', (event) => textAt(event, 'message').trim(), {
    description: 'Description of the event.',
  }),
  column('First Seen', firstSeen, {
    priority: 1,
    description: 'Time since it was first observed.',
  }),
  column('Count', count, { priority: 1, description: 'Number of occurrences.' }),
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
export const eventStorage: StorageDef = {
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
    resource: 'events',
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
      apiVersion: 'v1',
      kind: 'Event',
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

function source(event: Stored<Event>): string {
  const component = (event.source?.component ?? '') || (event.reportingComponent ?? '');
  const host = (event.source?.host ?? '') || (event.reportingInstance ?? '');
  return host === '' ? component : `${component}, ${host}`;
}

function count(event: Stored<Event>): number {
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
