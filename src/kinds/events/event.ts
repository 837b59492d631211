import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, required } from '../../meta/field-error.ts';
import { pathSegment } from '../../meta/names.ts';
import type { ApiObject } from '../../meta/types.ts';
import { at, numberAt, textAt } from '../cells.ts';
import { immutable, sameOrEmpty } from '../checks.ts';
import {
  eventColumns,
  eventStorage,
  eventsGroupLabels,
  isUnset,
  validateEvent,
} from '../core/event.ts';
import { defineKind } from '../define.ts';

/** Names in the `events` group and in the stored core form, in the latter's order. */
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

const toStorage = (object: ApiObject) => rename(object, renamed);
const fromStorage = (object: ApiObject) =>
  rename(
    object,
    renamed.map(([own, stored]) => [stored, own] as const),
  );

function validateSeries(event: JsonObject): FieldError[] {
  if (isUnset(event['series'])) return [];
  const errors: FieldError[] = [];
  if (numberAt(event, 'series', 'count') < 2) {
    errors.push(invalid('series.count', '', 'should be at least 2'));
  }
  if (isUnset(at(event, 'series', 'lastObservedTime'))) {
    errors.push(required('series.lastObservedTime'));
  }
  return errors;
}

/** New Events must say when and of what type they are, and leave the old fields alone (EVENT-1). */
function validateCreate(event: JsonObject): FieldError[] {
  const errors = validateSeries(event);
  if (isUnset(event['eventTime'])) errors.push(required('eventTime'));
  const type = textAt(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    errors.push(invalid('type', '', `has invalid value: ${type}`));
  }
  const refuse = (field: string) => errors.push(invalid(field, '', 'needs to be unset'));
  if (!isUnset(event['firstTimestamp'])) refuse('firstTimestamp');
  if (!isUnset(event['lastTimestamp'])) refuse('lastTimestamp');
  if (numberAt(event, 'count') !== 0) refuse('count');
  const sourceText = textAt(event, 'source', 'component') + textAt(event, 'source', 'host');
  if (sourceText !== '') refuse('source');
  return errors;
}

const fixedFields = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
];

function validateUpdate(event: JsonObject, old: JsonObject): FieldError[] {
  const series = sameOrEmpty(event['series'], old['series']) ? [] : validateSeries(event);
  const fixed = fixedFields.flatMap((field) => {
    const name = field === 'reportingComponent' ? 'reportingController' : field;
    return immutable(name, event[field], old[field]);
  });
  return [...series, ...fixed];
}

/** The current view of Events, with its strict rules. Messages name fields as the stored form does. */
export function event(dialect: Dialect): ResourceDef {
  const validate = (object: JsonObject) =>
    validateEvent(object, { dialect, controllerField: 'reportingController' });
  return defineKind({
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
        columns: eventColumns.map((one) => ({
          ...one,
          cell: (object, nowMs) => one.cell(toStorage(object as ApiObject), nowMs),
        })),
        storedColumns: eventColumns,
      },
    ],
    storage: eventStorage,
    strategy: {
      validateName: pathSegment,
      judgesBeforeMetadata: true,
      validateCreate: (_, object) => [...validate(object), ...validateCreate(object)],
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
