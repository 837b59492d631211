import { readFileSync } from 'node:fs';
import { exampleAuthority } from '@wheelhouse/kinds/testing';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { itemNames } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * The columns of each resource, as kube-apiserver's printers define them: types other than text
 * follow a colon, and columns of wide output have a star.
 */
const printed = readFileSync(new URL('./print-columns.txt', import.meta.url), 'utf8');

const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const runtimeConfig = new Map([['api/all', true]]);
const gates = ['ClusterTrustBundle=true', 'StorageVersionMigrator=true'];
const { gates: featureGates } = readFeatureGates(gates);
const server = await withServer({ dialect: 'kubernetes', runtimeConfig, featureGates });

const pathTo = (resource: string) => `/${resource.startsWith('v1/') ? 'api' : 'apis'}/${resource}`;

function shownColumn({ name, type, priority }: JsonObject): string {
  return `${name}${type === 'string' ? '' : `:${type}`}${priority === 1 ? '*' : ''}`;
}

const rows = printed
  .trim()
  .split('\n')
  .map((line) => line.split(/: (.*)/) as [resource: string, columns: string]);

test.each(rows)('CODEC-5: columns of %s', async (resource, columns) => {
  const { status, body } = await server.get(pathTo(resource), { accept: table });
  expect(status).toBe(200);
  expect(body.columnDefinitions.map(shownColumn).join(', ')).toBe(columns);
});

/** The cells of a new object, without its name, and without the last cell if that is the age. */
async function cellsOf(resource: string, object: object): Promise<readonly unknown[]> {
  const made = await server.post(pathTo(resource), { metadata: { name: 'x' }, ...object });
  expect(made.status, made.text).toBe(201);
  const { name } = made.body.metadata;
  const { body } = await server.get(`${pathTo(resource)}/${name}`, { accept: table });
  const isAged = body.columnDefinitions.at(-1)?.name === 'Age';
  return body.rows[0].cells.slice(1, isAged ? -1 : undefined);
}

const labels = { b: '2', a: '1' };
const template = {
  metadata: { labels },
  spec: {
    containers: [
      { name: 'one', image: 'i:1' },
      { name: 'two', image: 'i:2' },
    ],
  },
};

test.each<[resource: string, object: object, cells: readonly unknown[]]>([
  ['v1/namespaces/default/podtemplates', { template }, ['one,two', 'i:1,i:2', 'a=1,b=2']],
  [
    'certificates.k8s.io/v1alpha1/clustertrustbundles',
    {
      metadata: { name: 'example.com:x:y' },
      spec: { signerName: 'example.com/x', trustBundle: exampleAuthority },
    },
    ['example.com/x'],
  ],
  [
    'coordination.k8s.io/v1alpha2/namespaces/default/leasecandidates',
    {
      spec: {
        leaseName: 'l',
        binaryVersion: '1.32.0',
        emulationVersion: '1.31.0',
        strategy: 'OldestEmulationVersion',
      },
    },
    ['l', '1.32.0', '1.31.0'],
  ],
  [
    'networking.k8s.io/v1beta1/ipaddresses',
    {
      metadata: { name: '10.9.0.7' },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 's' } },
    },
    ['services/default/s'],
  ],
  [
    'networking.k8s.io/v1beta1/servicecidrs',
    { spec: { cidrs: ['10.9.0.0/24', 'fd00::/64'] } },
    ['10.9.0.0/24,fd00::/64'],
  ],
  [
    'resource.k8s.io/v1beta1/namespaces/default/resourceclaims',
    { spec: { devices: { requests: [{ name: 'r', deviceClassName: 'example' }] } } },
    ['pending'],
  ],
  [
    'resource.k8s.io/v1beta1/resourceslices',
    {
      spec: {
        driver: 'driver.example.com',
        nodeName: 'n',
        pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
      },
    },
    ['n', 'driver.example.com', 'p'],
  ],
  [
    'storage.k8s.io/v1beta1/volumeattributesclasses',
    { driverName: 'driver.example.com', parameters: { a: 'b' } },
    ['driver.example.com'],
  ],
  [
    'storagemigration.k8s.io/v1alpha1/storageversionmigrations',
    { spec: { resource: { group: 'apps', version: 'v1', resource: 'deployments' } } },
    ['deployments.v1.apps'],
  ],
  [
    'internal.apiserver.k8s.io/v1alpha1/storageversions',
    { metadata: { name: 'core.pods' }, spec: {} },
    ['<unset>', ''],
  ],
])('CODEC-5: cells of %s', async (resource, object, cells) => {
  expect(await cellsOf(resource, object)).toEqual(cells);
});

test('CODEC-5: the selector of a ReplicationController is a wide column', async () => {
  const resource = 'v1/namespaces/default/replicationcontrollers';
  const cells = await cellsOf(resource, { spec: { replicas: 2, template } });
  expect(cells.slice(4)).toEqual(['one,two', 'i:1,i:2', 'a=1,b=2']);
});

test('CODEC-5: FlowSchemas are listed by precedence, other objects by name', async () => {
  const path = pathTo('flowcontrol.apiserver.k8s.io/v1/flowschemas');
  for (const [name, matchingPrecedence] of [
    ['a', 700],
    ['b', 20],
    ['c', 20],
  ] as const) {
    const priorityLevelConfiguration = { name: 'exempt' };
    const spec = { matchingPrecedence, priorityLevelConfiguration };
    expect((await server.post(path, { metadata: { name }, spec })).status).toBe(201);
  }
  const { body } = await server.get(path, { accept: table });
  const names = body.rows.map((row) => String(row.cells[0]));
  expect(names.filter((name) => name.length === 1)).toEqual(['b', 'c', 'a']);
  const plain = itemNames(await server.get(path));
  expect(plain.filter((name) => name.length === 1)).toEqual(['a', 'b', 'c']);
});
