import { type ApiObject, type JsonObject, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, expect, test } from 'vitest';
import { Availability, type AvailabilityOptions } from './availability.ts';

const name = 'v1.a.example.com';
const where = 'service/s in "n"';

let running: Availability | undefined;
afterEach(() => running?.close());

/** Waits until all work that does not depend on the clock is done. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Creates the controller of one APIService. `look` runs a check and returns its condition. */
function availabilityOf(
  options: Partial<AvailabilityOptions> & { readonly spec?: JsonObject } = {},
) {
  const clock = new FakeClock();
  const unavailable: string[] = [];
  const probes: string[] = [];
  let object = {
    metadata: { name },
    spec: {
      group: 'a.example.com',
      version: 'v1',
      service: { namespace: 'n', name: 's', port: 443 },
      ...options.spec,
    },
  } as unknown as ApiObject;
  const availability = new Availability({
    clock,
    logger: silentLogger,
    facts: {
      service: async () => service({}),
      endpoints: async () => [subset([{ ip: '10.1.0.1' }])],
    },
    resolve: async () => ({ host: '10.1.0.1', port: 8443 }),
    probe: async (_, { path, user, place }) => {
      probes.push(`${user.name} ${user.groups} ${place.host}:${place.port}${path}`);
      return 200;
    },
    read: () => object,
    writeStatus: async (_, edit) => {
      object = edit(object);
    },
    onUnavailable: (lostName, reason) => void unavailable.push(`${lostName} ${reason}`),
    ...options,
  });
  running = availability;
  const condition = () => {
    const { conditions } = (object['status'] ?? {}) as { conditions?: JsonObject[] };
    return conditions?.find(({ type }) => type === 'Available');
  };
  const look = async () => {
    availability.enqueue(name);
    await turns();
    const { reason, status, message } = condition() ?? {};
    return { reason, status, message };
  };
  const change = (status: JsonObject) => {
    object = { ...object, status } as ApiObject;
  };
  const status = () => object['status'];
  return { look, unavailable, probes, clock, condition, change, status };
}

function service(spec: JsonObject): ApiObject {
  const ports = [{ name: 'https', port: 443 }];
  return { metadata: { name: 's' }, spec: { ports, ...spec } } as unknown as ApiObject;
}

function subset(addresses: JsonObject[], port: JsonObject = { name: 'https', port: 8443 }) {
  return { metadata: {}, subsets: [{ addresses, ports: [port] }] } as unknown as ApiObject;
}

function slice(conditions: JsonObject, port: JsonObject = { name: 'https', port: 8443 }) {
  return { metadata: {}, endpoints: [{ conditions }], ports: [port] } as unknown as ApiObject;
}

const facts = (
  found: ApiObject | undefined | Error,
  endpoints: ApiObject[] | Error = [],
): Partial<AvailabilityOptions> => ({
  facts: {
    service: () => (found instanceof Error ? Promise.reject(found) : Promise.resolve(found)),
    endpoints: () =>
      endpoints instanceof Error ? Promise.reject(endpoints) : Promise.resolve(endpoints),
  },
});
const unavailable = 'False';

test.each([
  [facts(undefined), unavailable, 'ServiceNotFound', `${where} is not present`],
  [
    facts(new Error('boom')),
    'Unknown',
    'ServiceAccessError',
    `${where} cannot be checked due to: boom`,
  ],
  [
    facts(service({ ports: [{ port: 80 }] })),
    unavailable,
    'ServicePortError',
    `${where} is not listening on port 443`,
  ],
  [
    facts(service({}), new Error('boom')),
    'Unknown',
    'EndpointsAccessError',
    `${where} cannot be checked due to: boom`,
  ],
  [facts(service({})), unavailable, 'EndpointsNotFound', `cannot find endpoints for ${where}`],
  [
    facts(service({}), [
      subset([]),
      slice({ ready: false }),
      slice({}, { name: 'http', port: 80 }),
    ]),
    unavailable,
    'MissingEndpoints',
    `endpoints for ${where} have no addresses with port name "https"`,
  ],
  [facts(service({}), [slice({})]), 'True', 'Passed', 'all checks passed'],
  [facts(service({ type: 'ExternalName', ports: [] })), 'True', 'Passed', 'all checks passed'],
  [
    { resolve: () => Promise.reject(new Error('no endpoints available for service "s"')) },
    unavailable,
    'FailedDiscoveryCheck',
    'no endpoints available for service "s"',
  ],
  [
    { probe: async () => 404 },
    unavailable,
    'FailedDiscoveryCheck',
    'failing or missing response from https://10.1.0.1:8443/apis/a.example.com/v1: bad status from https://10.1.0.1:8443/apis/a.example.com/v1: 404',
  ],
  [
    { probe: () => Promise.reject(new Error('EOF')) },
    unavailable,
    'FailedDiscoveryCheck',
    'failing or missing response from https://10.1.0.1:8443/apis/a.example.com/v1: Get "https://10.1.0.1:8443/apis/a.example.com/v1": EOF',
  ],
] as const)('ADM-4: case %#: the condition is %s, %s', async (options, status, reason, message) => {
  const { look } = availabilityOf(options as Partial<AvailabilityOptions>);
  expect(await look()).toEqual({ status, reason, message });
});

test('ADM-4: a probe requests the discovery path as an administrator', async () => {
  const { look, probes } = availabilityOf();
  await look();
  expect(probes).toEqual([
    'system:kube-aggregator system:masters 10.1.0.1:8443/apis/a.example.com/v1',
  ]);
});

test('ADM-4: a server is available if one of several probes succeeds', async () => {
  let probes = 0;
  const { look } = availabilityOf({
    probe: async () => {
      probes += 1;
      return probes === 3 ? 200 : 500;
    },
  });
  expect((await look()).status).toBe('True');
  expect(probes).toBe(5);
});

test('ADM-4: a failed server is probed again soon, a healthy one every 30 seconds', async () => {
  let status = 500;
  let probes = 0;
  const { look, clock, unavailable, condition, change } = availabilityOf({
    probe: async () => {
      probes += 1;
      return status;
    },
  });
  change({
    conditions: [
      { type: 'Other', status: 'True' },
      { type: 'Available', status: 'True' },
    ],
  });
  await look();
  expect(unavailable).toEqual([`${name} FailedDiscoveryCheck`]);
  expect(condition()?.['lastTransitionTime']).toBe('2030-01-01T00:00:00Z');
  status = 200;
  const before = probes;
  clock.advance(5);
  await turns();
  expect(probes).toBe(before + 1);
  expect(condition()).toMatchObject({ status: 'True', reason: 'Passed' });
  clock.advance(29_000);
  await turns();
  expect(probes).toBe(before + 1);
  clock.advance(1_000);
  await turns();
  expect(probes).toBe(before + 2);
  expect(unavailable).toHaveLength(1);
});

test('ADM-4: a local APIService is always available', async () => {
  const { look, change, probes } = availabilityOf({ spec: { service: null } });
  change({ conditions: [{ type: 'Available', status: 'False', reason: 'ServiceNotFound' }] });
  expect(await look()).toEqual({
    status: 'True',
    reason: 'Local',
    message: 'Local APIServices are always available',
  });
  expect(probes).toEqual([]);
});

test('a changed condition keeps its place among others', async () => {
  const { look, change, status } = availabilityOf();
  const lastTransitionTime = '2020-01-01T00:00:00Z';
  const other = { type: 'Other', status: 'True', lastTransitionTime };
  change({ conditions: [{ type: 'Available', status: 'False', lastTransitionTime }, other] });
  await look();
  expect(status()).toMatchObject({ conditions: [{ type: 'Available', status: 'True' }, other] });
});
