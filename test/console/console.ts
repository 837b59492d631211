import { mkdtempSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  type Api,
  createApi,
  type Discovered,
  type Fetch,
  type Kind,
  openDiscovery,
  readYaml,
  resourceName,
} from '@wheelhouse/console/testing';
import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { adminToken, type TestServer } from '../support/harness.ts';

/** The built files of the console. */
export interface BuiltConsole {
  readonly directory: string;
  remove(): void;
}

/** Builds the console, or returns the build that all test files share. */
export async function buildConsole(): Promise<BuiltConsole> {
  const shared = process.env['WHEELHOUSE_TEST_PROGRAMS'];
  if (shared !== undefined) return { directory: join(shared, 'dist', 'console'), remove: () => {} };
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-console-'));
  const script = new URL('../../scripts/build-console.mjs', import.meta.url).href;
  const loaded = (await import(script)) as { buildConsole(outdir: string): Promise<void> };
  await loaded.buildConsole(directory);
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/**
 * Like `fetch` in a browser that trusts the certificates of test servers. Node's `fetch` can be
 * made to trust them only through the environment of the process, but other tests in the process
 * check that they are not trusted.
 */
export const trustingFetch: Fetch = (url, { method, headers, body, signal }) =>
  new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = https.request(
      url,
      {
        method,
        headers: { ...headers, ...length },
        agent: trustingAgent,
        ...(signal === undefined ? {} : { signal }),
      },
      (response) => {
        const { statusCode: status } = response;
        const pairs = Object.entries(response.headers).map(
          ([name, value]) => [name, String(value)] as const,
        );
        const isEmpty = status === 204 || status === 304;
        const bytes = isEmpty ? null : (Readable.toWeb(response) as ReadableStream<Uint8Array>);
        resolve(new Response(bytes, { status: status ?? 500, headers: Object.fromEntries(pairs) }));
      },
    );
    sent.on('error', (cause) =>
      reject(signal?.aborted === true ? signal.reason : new TypeError('fetch failed', { cause })),
    );
    sent.end(body);
  });
const trustingAgent = new https.Agent({ rejectUnauthorized: false, keepAlive: true });

/** Parses YAML like the console. */
export async function parseYaml(text: string): Promise<JsonValue | undefined> {
  const read = readYaml(text);
  return read.fault === undefined ? read.value : undefined;
}

/** A Deployment with one container. */
export function deploymentOf(name: string, spec: object = {}): JsonObject {
  const labels = { app: name };
  const containers = [{ name: 'web', image: 'example.com/web:1' }];
  const template = { metadata: { labels }, spec: { containers } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { selector: { matchLabels: labels }, template, ...spec },
  };
}

/** The API of the console, with a count of 401 responses. */
export interface TestApi extends Api {
  readonly unauthorized: () => number;
}

/** The API of the console for a user of a plain server. */
export function apiFor(
  server: Pick<TestServer, 'url'>,
  options: { readonly token?: string | undefined; readonly fetch?: Fetch } = {},
): TestApi {
  const credential = { token: 'token' in options ? options.token : adminToken };
  let unauthorizedCount = 0;
  const api = createApi({
    fetch: options.fetch ?? trustingFetch,
    base: server.url,
    credential: () => credential,
    onUnauthorized: () => {
      unauthorizedCount += 1;
    },
    parseYaml,
  });
  return { ...api, unauthorized: () => unauthorizedCount };
}

/** Discovery by the console. */
export async function discovered(api: Api): Promise<Discovered> {
  const options = { api, clock: new FakeClock(), onChange: () => {} };
  const discovery = await openDiscovery(options);
  discovery.close();
  return discovery.current();
}

/** A kind by its resource name, such as `deployments.apps`. */
export function kindNamed(kinds: readonly Kind[], name: string): Kind {
  const found = kinds.find((kind) => resourceName(kind) === name && kind.preferred);
  if (found === undefined) throw new Error(`the server has no ${name}`);
  return found;
}
