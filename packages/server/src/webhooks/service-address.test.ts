import { type ApiObject, dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { createServiceResolver } from './service-address.ts';

const reference = { namespace: 'n', name: 's', port: 443 };

/** Resolves the Service, given the existing objects by resource and name. */
function resolve(
  found: Readonly<Record<string, JsonObject | undefined>>,
  slices: JsonObject[] = [],
) {
  return createServiceResolver({
    dialect: dialectOf('svc'),
    objects: {
      get: async (resource, { name }) => found[`${resource}/${name}`] as ApiObject | undefined,
      list: async (resource) =>
        resource === 'endpointslices.discovery' ? (slices as ApiObject[]) : [],
    },
  })(reference);
}

const service = (spec: JsonObject): JsonObject => ({
  metadata: { name: 's' },
  spec: { clusterIP: '10.0.0.1', ports: [{ name: 'https', port: 443, targetPort: 8443 }], ...spec },
});
const slice = (name: string, endpoints: JsonObject[], port = 8443): JsonObject => ({
  metadata: { labels: { 'svc.io/service-name': name } },
  ports: [
    { name: 'http', port: 80 },
    { name: 'https', port },
  ],
  endpoints,
});

test('a Service resolves to a ready endpoint of its slices at the named port', async () => {
  const slices = [
    slice('other', [{ addresses: ['10.1.0.1'] }]),
    slice('s', [
      { addresses: ['10.1.0.2'], conditions: { ready: false } },
      { addresses: ['10.1.0.3'], conditions: { ready: true } },
    ]),
  ];
  const found = { 'services/s': service({}) };
  expect(await resolve(found, slices)).toEqual({ host: '10.1.0.3', port: 8443 });
});

test('a Service resolves to an address of its Endpoints', async () => {
  const subsets = [{ addresses: [{ ip: '10.1.0.4' }], ports: [{ name: 'https', port: 9443 }] }];
  const found = { 'services/s': service({}), 'endpoints/s': { metadata: {}, subsets } };
  expect(await resolve(found)).toEqual({ host: '10.1.0.4', port: 9443 });
});

test('a Service without endpoints resolves to its own address', async () => {
  expect(await resolve({ 'services/s': service({}) })).toEqual({ host: '10.0.0.1', port: 443 });
});

test('an ExternalName Service resolves to its host at the requested port', async () => {
  const found = { 'services/s': service({ type: 'ExternalName', externalName: 'a.example.com' }) };
  expect(await resolve(found)).toEqual({ host: 'a.example.com', port: 443 });
});

test.each<[JsonObject | undefined, string]>([
  [undefined, 'service "s" not found'],
  [service({ ports: [{ port: 80 }] }), 'no service port 443 found for service "s"'],
  [service({ clusterIP: 'None' }), 'no endpoints available for service "s"'],
])('%j cannot be resolved', async (found, message) => {
  await expect(resolve({ 'services/s': found })).rejects.toThrow(message);
});
