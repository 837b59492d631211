import {
  type ApiObject,
  asApiObject,
  type JsonObject,
  type JsonValue,
  StatusError,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { applyPatch } from './apply-patch.ts';
import { recordUpdate, type TrackedKind } from './field-manager.ts';

/** Schemas for tests. */
export const text: Schema = { type: 'string' };
/** The schema of a number. */
export const number: Schema = { type: 'number' };
/** The schema of an object with these properties. */
export const object = (properties: Readonly<Record<string, Schema>>, more: Partial<Schema> = {}) =>
  ({
    type: 'object',
    properties: new Map(Object.entries(properties).map(([name, schema]) => [name, { schema }])),
    ...more,
  }) satisfies Schema;
/** The schema of a list; `more` states how it is merged. */
export const list = (items: Schema, more: Partial<Schema> = {}): Schema => ({
  type: 'array',
  items,
  ...more,
});
/** The schema of a list that is merged as a set. */
export const setOf = (items: Schema): Schema => list(items, { listType: 'set' });
/** The schema of a list that is merged by the keys of its items. */
export const listMap = (keys: readonly string[], items: Schema): Schema =>
  list(items, { listType: 'map', listMapKeys: keys });
/** The schema of a map with arbitrary names. */
export const mapOf = (element: Schema): Schema => ({
  type: 'object',
  additionalProperties: element,
});

const metadataSchema: Schema = object({
  name: text,
  uid: text,
  labels: mapOf(text),
  annotations: mapOf(text),
});

/** One write of a script; `fields` are the members other than apiVersion, kind, and metadata. */
export interface Write {
  readonly op: 'apply' | 'force' | 'update';
  readonly by: string;
  readonly fields: JsonObject;
  readonly metadata?: JsonObject;
  readonly version?: string;
}

/** An object to which tests write, and the schemas of its versions, which tests may change. */
export interface Script {
  readonly schemas: Map<string, Schema>;
  /** Converts an object's members to another version; by default, they are the same. */
  readonly convert?: (fields: JsonObject, version: string) => JsonObject;
  live: ApiObject | undefined;
  nowMs: number;
}

/** The name of the last-applied annotation of scripts' objects. */
export const annotation = 'example.com/last-applied';

/** A script for objects that do not exist yet, with `schema` for the version v1. */
export function scriptOf(schema: Schema, more: Partial<Script> = {}): Script {
  return { schemas: new Map([['v1', schema]]), live: undefined, nowMs: 1_700_000_000_000, ...more };
}

const versionOf = (apiVersion: JsonValue | undefined) => String(apiVersion).split('/')[1] ?? '';

function kindOf(script: Script, version: string): TrackedKind {
  return {
    apiVersion: `example.com/${version}`,
    kind: 'Thing',
    subresource: '',
    metadataSchema,
    schemaFor: (apiVersion) => script.schemas.get(versionOf(apiVersion)),
    convert: (from, apiVersion) => convertThing(script, from, apiVersion),
    lastApplied: { annotation, manager: 'kubectl' },
  };
}

function convertThing(script: Script, from: JsonObject, apiVersion: string): JsonObject {
  const converted = script.convert?.(structuredClone(from), versionOf(apiVersion)) ?? from;
  return { ...converted, apiVersion };
}

/** Performs one write. A rejected write throws and does not change the object. */
export function write(script: Script, step: Write): ApiObject {
  script.nowMs += 60_000;
  const { nowMs } = script;
  const version = step.version ?? 'v1';
  const kind = kindOf(script, version);
  const stored = script.live;
  const live =
    stored === undefined ? undefined : asApiObject(convertThing(script, stored, kind.apiVersion));
  const body: ApiObject = {
    ...structuredClone(step.fields),
    apiVersion: kind.apiVersion,
    kind: 'Thing',
    metadata: { name: 'a', ...step.metadata },
  };
  let next = body;
  if (step.op === 'update') {
    if (stored !== undefined) body.metadata.uid = 'u';
    const error = recordUpdate(kind, { live, object: body, manager: step.by, nowMs });
    if (error !== undefined) throw error;
  } else {
    const force = step.op === 'force';
    next = applyPatch(kind, { live, patch: body, manager: step.by, force, nowMs });
  }
  script.live = structuredClone({ ...next, metadata: { ...next.metadata, uid: 'u' } });
  return script.live;
}

/** The members other than apiVersion, kind, and metadata. */
export function fieldsOf(script: Script): JsonObject {
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = script.live!;
  return fields;
}

/** The FieldsV1 of each manager as JSON text, by manager name. */
export function owners(script: Script): Record<string, string> {
  const entries = script.live?.metadata.managedFields ?? [];
  return Object.fromEntries(
    entries.map((entry) => [entry.manager ?? '', JSON.stringify(entry.fieldsV1)]),
  );
}

/** The message and path of each conflict of a write; empty if the write succeeds. */
export function conflictsOf(run: () => unknown): string[] {
  try {
    run();
    return [];
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 409) throw error;
    const causes = error.status.details?.causes ?? [];
    return causes.map((cause) => `${cause.message} ${cause.field}`);
  }
}
