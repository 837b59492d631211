import { once } from 'node:events';
import http2 from 'node:http2';
import { randomOf } from '@wheelhouse/machinery';
import { collectGarbage } from '@wheelhouse/machinery/testing';
import {
  adminToken,
  configMap,
  type RequestOptions,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { type SiegeFigures, type SiegeOptions, type SiegePart, timeLimit } from './part.ts';

/**
 * Sends requests that differ in one value, such as the name of an object or of a user, and measures
 * what is left of them in memory (TRUST-4): a server that remembers each value would fill its
 * memory, however small the values are.
 */
export const retentionPart: SiegePart = {
  name: 'retention',
  summary: 'Requests with ever new values, of which nothing stays; a round is 4,000 with one kind.',
  defaultRounds: 60,
  run,
};

const requestsPerRound = 4000;
/** The first requests compile code and fill caches. */
const warmingRequests = 800;
const concurrency = 40;
/** Bytes of a request that may stay. A list of timers took 160. */
const bytesMax = 64;
/** Measurements that must exceed the bound: each also counts what the process did meanwhile. */
const attemptsMax = 6;

const maps = '/api/v1/namespaces/default/configmaps';
const dryRuns = (path: string) => `${path}?dryRun=All`;
const authorization = 'authorization.svc.io';
const podWith = (cpu: string) => ({
  metadata: { name: 'a' },
  spec: { containers: [{ name: 'a', image: 'b', resources: { limits: { cpu } } }] },
});

/** A request with a value that no other request has. */
type Send = (server: TestServer, value: string, index: number) => Promise<unknown>;

const get =
  (pathOf: (value: string) => string): Send =>
  (server, value) =>
    server.get(pathOf(value));
const withHeader =
  (name: string, headerOf: (value: string) => string = (value) => value): Send =>
  (server, value) =>
    server.get(`${maps}/none`, { headers: { [name]: headerOf(value) } });
const post =
  (path: string, bodyOf: (value: string) => RequestOptions['body']): Send =>
  (server, value) =>
    server.post(path, bodyOf(value) as object);

/** Requests by the value in which they differ. */
const inputs: Readonly<Record<string, Send>> = {
  'names of objects': get((value) => `${maps}/${value}`),
  namespaces: get((value) => `/api/v1/namespaces/${value}/configmaps`),
  paths: get((value) => `/${value}`),
  groups: get((value) => `/apis/${value}/v1/things`),
  resources: get((value) => `/api/v1/namespaces/default/${value}`),
  subresources: get((value) => `/api/v1/namespaces/default/pods/a/${value}`),
  'documents of OpenAPI': get((value) => `/openapi/v3/apis/${value}?hash=${value}`),
  parameters: get((value) => `${maps}?${value}=1&limit=1`),
  'label selectors': get((value) => `${maps}?labelSelector=a%3D${value.slice(0, 60)}`),
  'field selectors': get((value) => `${maps}?fieldSelector=metadata.name%3D${value}`),
  'continue tokens': get((value) => `${maps}?limit=1&continue=${value}`),
  limits: (server, _, index) => server.get(`${maps}?limit=${index + 1}`),
  methods: (server, value) => server.request(value.slice(0, 60).toUpperCase(), maps),
  'media types': withHeader('accept', (value) => `application/${value},application/json`),
  forms: withHeader('accept', (value) => `application/json;as=${value},application/json`),
  'names of clients': withHeader('user-agent'),
  'audit IDs': withHeader('audit-id'),
  origins: withHeader('origin', (value) => `https://${value}`),
  etags: withHeader('if-none-match'),
  tokens: withHeader('authorization', (value) => `Bearer ${value}`),
  users: withHeader('impersonate-user'),
  'media types of bodies': (server, value) =>
    server.post(maps, configMap('a'), { type: `application/${value}` }),
  'field managers': (server, value) =>
    server.post(`${dryRuns(maps)}&fieldManager=${value.slice(0, 100)}`, configMap('a')),
  members: post(dryRuns(maps), (value) => ({ ...configMap('a'), [value]: 'x' })),
  keys: post(dryRuns(maps), (value) => configMap('a', { data: { [value]: 'x' } })),
  labels: post(dryRuns(maps), (value) => ({
    metadata: { name: 'a', labels: { [value.slice(0, 60)]: 'x' } },
  })),
  kinds: post(maps, (value) => ({ ...configMap('a'), kind: value })),
  'API groups of bodies': post(maps, (value) => ({ ...configMap('a'), apiVersion: `${value}/v1` })),
  reviews: post(`/apis/${authorization}/v1/subjectaccessreviews`, (value) => ({
    spec: { user: value, resourceAttributes: { verb: 'get', resource: value, group: value } },
  })),
  quantities: (server, _, index) =>
    server.post(dryRuns('/api/v1/namespaces/default/pods'), podWith(`${index}m`)),
  'timeouts of watches': async (server, _, index) => {
    if (index % concurrency !== 0) return;
    // On a connection of their own: the server closes one whose streams are reset early.
    const connection = http2.connect(server.url, { rejectUnauthorized: false });
    const opened = Array.from({ length: concurrency }, (_, at) => {
      const path = `${maps}?watch=true&timeoutSeconds=${10_000 + index - at}`;
      const head = { ':path': path, authorization: `Bearer ${adminToken}` };
      return once(connection.request(head), 'response');
    });
    await Promise.all(opened);
    connection.destroy();
  },
};

async function run(options: SiegeOptions): Promise<SiegeFigures> {
  const { seed, rounds, log } = options;
  const random = randomOf(seed);
  const isOver = timeLimit(options);
  const server = await startTestServer();
  const counts = { requests: 0, bytesMax: 0 };
  try {
    for (let round = 0; round < rounds && !isOver(); round += 1) {
      const [name, send] = random.pick(Object.entries(inputs));
      const kept = await retained(server, { send, prefix: `v${seed}-${round}-` });
      counts.requests += kept.requests;
      counts.bytesMax = Math.max(counts.bytesMax, kept.bytes);
      log(`${name}: ${kept.bytes} bytes of each request stay`);
      if (kept.bytes > bytesMax) {
        throw new Error(`round ${round}: ${kept.bytes} bytes of each request stay: ${name}`);
      }
    }
  } finally {
    await server.stop();
  }
  return counts;
}

/** The bytes of each request that stay, in the best of some measurements. */
async function retained(
  server: TestServer,
  of: { readonly send: Send; readonly prefix: string },
): Promise<{ readonly bytes: number; readonly requests: number }> {
  let index = 0;
  const sendAll = async (count: number) => {
    for (const end = index + count; index < end; ) {
      const batch = Array.from({ length: concurrency }, () => {
        index += 1;
        return of.send(server, `${of.prefix}${index}`.padEnd(240, 'x'), index);
      });
      await Promise.all(batch);
    }
  };
  await sendAll(warmingRequests);
  let bytes = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attemptsMax && bytes > bytesMax; attempt += 1) {
    const before = usedBytes();
    await sendAll(requestsPerRound);
    bytes = Math.min(bytes, Math.round((usedBytes() - before) / requestsPerRound));
  }
  return { bytes, requests: index };
}

/** The memory that is in use after a garbage collection. */
function usedBytes(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
