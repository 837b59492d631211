import { schemaOf } from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import { applyPatch, recordUpdate, type TrackedKind } from '@wheelhouse/structured-merge';
import { bench, describe } from 'vitest';

const kindOf = (typeName: string, apiVersion: string, kind: string): TrackedKind => ({
  apiVersion,
  kind,
  subresource: '',
  schemaFor: (version) => (version === apiVersion ? schemaOf(typeName) : undefined),
  metadataSchema: schemaOf('meta.v1.ObjectMeta'),
  convert: (object) => object,
  lastApplied: { annotation: 'example.com/last-applied', manager: 'kubectl' },
});

const configMap = kindOf('core.v1.ConfigMap', 'v1', 'ConfigMap');
const service = kindOf('core.v1.Service', 'v1', 'Service');
const nowMs = 1_700_000_000_000;
const manager = 'bench';

function mapOfBytes(bytes: number): ApiObject {
  const data: Record<string, string> = {};
  for (let at = 0; at * 64 < bytes; at += 1) data[`key-${at}`] = 'v'.repeat(50);
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'b' }, data };
}

function serviceOfPorts(count: number): ApiObject {
  const ports = Array.from({ length: count }, (_, at) => ({
    name: `p${at}`,
    port: at + 1,
    protocol: 'TCP',
  }));
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: { ports } };
}

/** The stored form: a separate tree, because each request decodes its own. */
function stored(kind: TrackedKind, patch: ApiObject): string {
  const object = applyPatch(kind, { live: undefined, patch, manager, force: false, nowMs });
  return JSON.stringify({ ...object, metadata: { ...object.metadata, uid: 'u' } });
}

describe('apply again with one value changed', () => {
  for (const kib of [1, 16, 256, 1024]) {
    const patch = mapOfBytes(kib * 1024);
    const live = JSON.parse(stored(configMap, patch)) as ApiObject;
    const changed = { ...patch, data: { ...(patch['data'] as object), 'key-0': 'other' } };
    bench(
      `ConfigMap of ${kib} KiB`,
      () => {
        const fresh = structuredClone(live.metadata);
        const current = { ...live, metadata: fresh };
        applyPatch(configMap, { live: current, patch: changed, manager, force: false, nowMs });
      },
      { time: 200 },
    );
  }
  const patch = serviceOfPorts(1000);
  const text = stored(service, patch);
  bench(
    'list of 1,000 items',
    () => {
      const live = JSON.parse(text) as ApiObject;
      applyPatch(service, { live, patch, manager: 'other', force: false, nowMs });
    },
    { time: 300 },
  );
});

describe('record an update', () => {
  const object = mapOfBytes(1024);
  const text = stored(configMap, object);
  const live = JSON.parse(text) as ApiObject;
  bench(
    'ConfigMap of 1 KiB',
    () => {
      const data = { ...(object['data'] as object), 'key-0': 'other' };
      const { managedFields: _, ...metadata } = live.metadata;
      recordUpdate(configMap, { live, object: { ...object, metadata, data }, manager, nowMs });
    },
    { time: 200 },
  );
});
