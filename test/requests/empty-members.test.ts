import type { Pod, PodTemplate } from '@wheelhouse/kinds/types/core/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { definitionOf, definitions } from '../custom-kinds/custom-kinds.ts';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

// Rules see empty lists and maps, although neither answers nor stored objects contain them.

let namespace: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (plural: string) => `/api/v1/namespaces/${namespace}/${plural}`;

/** Creates an object; returns the status of the answer and the fields and messages of its causes. */
async function causesOf(path: string, body: object) {
  const answer = await server.post(path, body);
  const causes: { field: string; message: string }[] = answer.body.details?.causes ?? [];
  return [answer.status, ...causes.map(({ field, message }) => `${field}: ${message}`)];
}

describe('an empty member that must not be set', () => {
  const containers = [{ name: 'c', image: 'i' }];
  const template = (spec: object) => ({ metadata: { name: 'x' }, template: { spec } });

  test('API-7: a pod without a runtime class has no empty overhead', async () => {
    const pod = { metadata: { name: 'overhead' }, spec: { containers, overhead: {} } };
    const refused = await server.post(at('pods'), pod);
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      'pods "overhead" is forbidden: pod rejected: ' +
        'Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  });

  test.each([
    ['ports', { ports: [] }],
    ['resources', { resources: { limits: {} } }],
    ['resources', { resources: { claims: [] } }],
  ])('API-7: an ephemeral container has no empty %s', async (name, rest) => {
    const ephemeralContainers = [{ name: 'e', image: 'i', ...rest }];
    const found = await causesOf(at('podtemplates'), template({ containers, ephemeralContainers }));
    expect(found).toContain(
      `template.spec.ephemeralContainers[0].${name}: ` +
        'Forbidden: cannot be set for an Ephemeral Container',
    );
  });

  test('API-7: an ephemeral container may have empty resources', async () => {
    const ephemeralContainers = [{ name: 'e', image: 'i', resources: {} }];
    const found = await causesOf(at('podtemplates'), template({ containers, ephemeralContainers }));
    expect(found.join()).not.toContain('cannot be set');
  });

  test.each(['finalizers', 'ownerReferences', 'managedFields'])(
    'API-7: the claim of a volume has no empty %s',
    async (name) => {
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
      const volumeClaimTemplate = { metadata: { [name]: [] }, spec };
      const volumes = [{ name: 'v', ephemeral: { volumeClaimTemplate } }];
      expect(await causesOf(at('podtemplates'), template({ containers, volumes }))).toEqual([
        422,
        `template.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.${name}: ` +
          'Forbidden: cannot be set',
      ]);
    },
  );

  test('CRD-2: a schema has no empty dependencies', async () => {
    const schema = { type: 'object', properties: { a: { type: 'object', dependencies: {} } } };
    const names = { group: 'empties.test', plural: 'empties', kind: 'Empty' };
    const empties = definitionOf({ ...names, schema });
    const refused = await server.post(definitions, empties);
    expect(refused.body.details.causes).toEqual([
      {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: dependencies is not supported',
        field: 'spec.validation.openAPIV3Schema.properties[a].dependencies',
      },
    ]);
  });
});

describe('an empty member that may be set', () => {
  test('STORE-1: is neither answered nor stored', async () => {
    const metadata = { name: 'plain', labels: {}, finalizers: [] };
    const containers = [{ name: 'c', image: 'i', ports: [], env: [], resources: { limits: {} } }];
    const pod = { metadata, spec: { containers, nodeSelector: {}, tolerations: [], volumes: [] } };
    const created = await server.post<Pod>(at('pods'), pod);
    expect(created.status).toBe(201);
    const read = await server.get<Pod>(`${at('pods')}/plain`);
    for (const { metadata, spec } of [created.body, read.body]) {
      expect(metadata).not.toHaveProperty('labels');
      expect(metadata).not.toHaveProperty('finalizers');
      expect(spec).not.toHaveProperty('nodeSelector');
      expect(spec?.containers[0]).not.toHaveProperty('ports');
      expect(spec?.containers[0]).toMatchObject({ resources: {} });
    }
  });

  test('API-7: an update with empty members changes nothing', async () => {
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    const template = { metadata: { name: 'same' }, template: { spec } };
    const created = await server.post<PodTemplate>(at('podtemplates'), template);
    const { metadata, template: stored } = created.body;
    const body = {
      ...created.body,
      metadata: { ...metadata, labels: {}, ownerReferences: [] },
      template: { ...stored, spec: { ...stored?.spec, nodeSelector: {}, volumes: [] } },
    };
    const updated = await server.put<PodTemplate>(`${at('podtemplates')}/same`, body);
    expect(updated.status).toBe(200);
    expect(updated.body).toEqual(created.body);
    expect(updated.body.metadata.resourceVersion).toBe(metadata.resourceVersion);
  });
});
