import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Service } from '@wheelhouse/kinds/types/core/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { beforeAll, expect, test } from 'vitest';
import type { Answer, ResponseBody, ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * The objects that kube-apiserver 1.32 creates before it reports ready, by
 * `<group>/<version>/<resource>/<namespace>/<name>`. Contains the fields that decide requests,
 * without fields that differ between servers (addresses, identities, descriptions, status).
 */
const expected: Record<string, ApiObject> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'startup-objects.json'), 'utf8'),
);

const collections = [
  ...new Set(Object.keys(expected).map((key) => key.split('/').slice(0, -2).join('/'))),
];

let service: Answer<ResponseOf<Service>>;
/** Answers to lists of the collections, requested as soon as the server is ready. */
const lists = new Map<string, ResponseBody>();
const server = await withServer({
  dialect: 'kubernetes',
  authorizationModes: ['RBAC'],
  controllers: ['*'],
  flowControl: { type: 'priority-and-fairness', objects: 'followed' },
});

beforeAll(async () => {
  await Promise.all(
    collections.map(async (collection) => {
      const root = collection.startsWith('v1/') ? '/api' : '/apis';
      lists.set(collection, (await server.get(`${root}/${collection}`)).body);
    }),
  );
  service = await server.get<ResponseOf<Service>>('/api/v1/namespaces/default/services/kubernetes');
});

/** The members of an object that `expected` contains. */
function decisive({ metadata, aggregationRule, rules, ...object }: ApiObject): ApiObject {
  const { apiVersion: _, kind: _kind, status: _status, description: _text, ...rest } = object;
  const { annotations, labels } = metadata;
  const gathered = aggregationRule === undefined ? { rules } : { aggregationRule };
  return JSON.parse(JSON.stringify({ metadata: { annotations, labels }, ...gathered, ...rest }));
}

test.each(collections)(
  'AUTHZ-7, OPS-3: %s starts with exactly the reference’s objects',
  (collection) => {
    const wanted = Object.entries(expected).filter(([key]) => key.startsWith(`${collection}/`));
    const items = lists.get(collection)?.items ?? [];
    const found = Object.fromEntries(
      items.map((item) => {
        const { name, namespace = '' } = item.metadata;
        return [`${collection}/${namespace}/${name}`, decisive(item)];
      }),
    );
    expect(found).toEqual(Object.fromEntries(wanted));
  },
);

test('OPS-3: the server’s own Service exists as soon as the server is ready', () => {
  expect(service.status).toBe(200);
  expect(service.body.spec.ports[0]).toMatchObject({ name: 'https', port: 443 });
});

test('OPS-3: the server owns the same fields of its Service as kube-apiserver', () => {
  const [owner] = service.body.metadata.managedFields ?? [];
  expect(Object.keys(owner?.fieldsV1?.['f:spec'] ?? {}).sort()).toEqual([
    'f:clusterIP',
    'f:internalTrafficPolicy',
    'f:ipFamilyPolicy',
    'f:ports',
    'f:sessionAffinity',
    'f:type',
  ]);
});
