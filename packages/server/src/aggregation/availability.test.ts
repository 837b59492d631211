import { type ApiObject, type JsonObject, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, expect, test } from 'vitest';
import { Availability, type AvailabilityOptions } from './availability.ts';

const name = 'v1.a.example.com';
const where = 'service/s in "n"';

let running: Availability | undefined;
afterEach(() => running?.close());

/** Runs everything that does not wait for time. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The controller of one APIService, and its condition once that has settled. */
function availabilityOf(given: Partial<AvailabilityOptions> & { readonly spec?: JsonObject } = {}) {
  const clock = new FakeClock();
  const lost: string[] = [];
  const looks: string[] = [];
  let object = {
    metadata: { name },
    spec: {
      group: 'a.example.com',
      version: 'v1',
      service: { namespace: 'n', name: 's', port: 443 },
      ...given.spec,
    },
  } as unknown as ApiObject;
  const availability = new Availability({
    clock,
    logger: silentLogger,
    facts: {
      service: async () => service({}),
      endpoints: async () => [subset([{ ip: '10.1.0.1' }])],
    },
    find: async () => ({ host: '10.1.0.1', port: 8443 }),
    look: async (_, { path, user, place }) => {
      looks.push(`${user.name} ${user.groups} ${place.host}:${place.port}${path}`);
      return 200;
    },
    read: () => object,
    writeStatus: async (_, edit) => {
      object = edit(object);
    },
    lost: (lostName, reason) => void lost.push(`${lostName} ${reason}`),
    ...given,
  });
  running = availability;
  const condition = () => {
    const { conditions } = (object['status'] ?? {}) as { conditions?: JsonObject[] };
    return conditions?.find(({ type }) => type === 'Available');
  };
  const look = async () => {
    availability.look(name);
    await turns();
    const { reason, status, message } = condition() ?? {};
    return { reason, status, message };
  };
  const change = (status: JsonObject) => {
    object = { ...object, status } as ApiObject;
  };
  return { look, lost, looks, clock, condition, change };
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
const no = 'False';

test.each([
  [facts(undefined), no, 'ServiceNotFound', `${where} is not present`],
  [
    facts(new Error('boom')),
    'Unknown',
    'ServiceAccessError',
    `${where} cannot be checked due to: boom`,
  ],
  [
    facts(service({ ports: [{ port: 80 }] })),
    no,
    'ServicePortError',
    `${where} is not listening on port 443`,
  ],
  [
    facts(service({}), new Error('boom')),
    'Unknown',
    'EndpointsAccessError',
    `${where} cannot be checked due to: boom`,
  ],
  [facts(service({})), no, 'EndpointsNotFound', `cannot find endpoints for ${where}`],
  [
    facts(service({}), [
      subset([]),
      slice({ ready: false }),
      slice({}, { name: 'http', port: 80 }),
    ]),
    no,
    'MissingEndpoints',
    `endpoints for ${where} have no addresses with port name "https"`,
  ],
  [facts(service({}), [slice({})]), 'True', 'Passed', 'all checks passed'],
  [facts(service({ type: 'ExternalName', ports: [] })), 'True', 'Passed', 'all checks passed'],
  [
    { find: () => Promise.reject(new Error('no endpoints available for service "s"')) },
    no,
    'FailedDiscoveryCheck',
    'no endpoints available for service "s"',
  ],
  [
    { look: async () => 404 },
    no,
    'FailedDiscoveryCheck',
    'failing or missing response from https://10.1.0.1:8443/apis/a.example.com/v1: bad status from https://10.1.0.1:8443/apis/a.example.com/v1: 404',
  ],
  [
    { look: () => Promise.reject(new Error('EOF')) },
    no,
    'FailedDiscoveryCheck',
    'failing or missing response from https://10.1.0.1:8443/apis/a.example.com/v1: Get "https://10.1.0.1:8443/apis/a.example.com/v1": EOF',
  ],
] as const)('ADM-4: case %#: the condition is %s, %s', async (given, status, reason, message) => {
  const { look } = availabilityOf(given as Partial<AvailabilityOptions>);
  expect(await look()).toEqual({ status, reason, message });
});

test('ADM-4: the probe is the administrator’s, of what the server must serve', async () => {
  const { look, looks } = availabilityOf();
  await look();
  expect(looks).toEqual([
    'system:kube-aggregator system:masters 10.1.0.1:8443/apis/a.example.com/v1',
  ]);
});

test('ADM-4: one of several probes is enough', async () => {
  let asked = 0;
  const { look } = availabilityOf({
    look: async () => {
      asked += 1;
      return asked === 3 ? 200 : 500;
    },
  });
  expect((await look()).status).toBe('True');
  expect(asked).toBe(5);
});

test('ADM-4: a failing server is probed again soon, a healthy one every half minute', async () => {
  let status = 500;
  let asked = 0;
  const { look, clock, lost, condition, change } = availabilityOf({
    look: async () => {
      asked += 1;
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
  expect(lost).toEqual([`${name} FailedDiscoveryCheck`]);
  expect(condition()?.['lastTransitionTime']).toBe('2030-01-01T00:00:00Z');
  status = 200;
  const before = asked;
  clock.advance(5);
  await turns();
  expect(asked).toBe(before + 1);
  expect(condition()).toMatchObject({ status: 'True', reason: 'Passed' });
  clock.advance(29_000);
  await turns();
  expect(asked).toBe(before + 1);
  clock.advance(1_000);
  await turns();
  expect(asked).toBe(before + 2);
  expect(lost).toHaveLength(1);
});

test('ADM-4: a local one is always available', async () => {
  const { look, change, looks } = availabilityOf({ spec: { service: null } });
  change({ conditions: [{ type: 'Available', status: 'False', reason: 'ServiceNotFound' }] });
  expect(await look()).toEqual({
    status: 'True',
    reason: 'Local',
    message: 'Local APIServices are always available',
  });
  expect(looks).toEqual([]);
});
