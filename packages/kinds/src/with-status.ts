import { type ApiObject, type JsonObject, jsonObject } from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { Strategy } from './resource-def.ts';
import { sameOrEmpty } from './rules/checks.ts';
import { schemaOf } from './schema-of.ts';

/** Members that no endpoint's rules below are about. */
const common = new Set(['apiVersion', 'kind', 'metadata']);

/**
 * Adds what all kinds with a status have: it is empty on create, each endpoint changes its own part,
 * and `generation` counts the changes of the rest (META-8). The kind's own functions run after.
 */
export function withStatus(
  strategy: Strategy,
  options: { typeName: string; keepsStatusOnCreate: boolean; generation: boolean },
): Strategy {
  const { generation } = options;
  const keepsMetadata = strategy.resetFields?.['status']?.includes('metadata') === true;
  return {
    resetFields: { '': ['status'], status: ['spec'] },
    ...strategy,
    tracksGeneration: generation,
    prepareForCreate: (context, object) => {
      if (!options.keepsStatusOnCreate) object['status'] = emptyStatus(options.typeName);
      if (generation) object.metadata.generation = 1;
      strategy.prepareForCreate?.(context, object);
    },
    prepareForUpdate: (context, object, old) => {
      if (context.subresource === 'status') {
        keepAllBut(object, old, 'status');
        if (keepsMetadata) keepMetadata(object, old);
      } else keepMember(object, old, 'status');
      strategy.prepareForUpdate?.(context, object, old);
      if (generation && context.subresource !== 'status') countGeneration(object, old);
    },
  };
}

/** `generation` for kinds without a status. */
export function withGeneration(strategy: Strategy): Strategy {
  return {
    ...strategy,
    tracksGeneration: true,
    prepareForCreate: (context, object) => {
      object.metadata.generation = 1;
      strategy.prepareForCreate?.(context, object);
    },
    prepareForUpdate: (context, object, old) => {
      strategy.prepareForUpdate?.(context, object, old);
      countGeneration(object, old);
    },
  };
}

function emptyStatus(typeName: string): JsonObject {
  const empty = decodeTyped(schemaOf(typeName))({});
  return jsonObject(empty['status'] ?? {});
}

function keepMember(object: ApiObject, old: ApiObject, name: string): void {
  if (old[name] === undefined) delete object[name];
  else object[name] = structuredClone(old[name]);
}

function keepAllBut(object: ApiObject, old: ApiObject, changed: string): void {
  for (const name of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (!common.has(name) && name !== changed) keepMember(object, old, name);
  }
}

/** What a status is told of stays as it is, but for who wrote what. */
function keepMetadata({ metadata }: ApiObject, { metadata: old }: ApiObject): void {
  const { deletionTimestamp, generation, labels, annotations, finalizers, ownerReferences } = old;
  const kept = { deletionTimestamp, generation, labels, annotations, finalizers, ownerReferences };
  for (const [name, value] of Object.entries(kept)) {
    const member = name as keyof typeof kept;
    if (value === undefined) delete metadata[member];
    else Object.assign(metadata, { [member]: structuredClone(value) });
  }
}

/** Sets generation one up when anything but metadata and status differs. */
function countGeneration(object: ApiObject, old: ApiObject): void {
  const before = old.metadata.generation ?? 0;
  const names = new Set([...Object.keys(object), ...Object.keys(old)]);
  const changed = [...names].some(
    (name) => !common.has(name) && name !== 'status' && !sameOrEmpty(object[name], old[name]),
  );
  if (changed) object.metadata.generation = before + 1;
}
