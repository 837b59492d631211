import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { APIService } from '@wheelhouse/kinds/types/apiregistration/v1';
import { type JsonObject, systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { untilEnd } from '../support/cleanup.ts';
import {
  type ConfigChange,
  eventually,
  type ResponseOf,
  type TestServer,
} from '../support/harness.ts';
import { listenLocally, trackConnections } from '../support/local-server.ts';
import { withServer } from '../support/with-server.ts';

/** The group of APIServices in the tests' dialect. */
export const registrationGroup = 'apiregistration.svc.io';
export const apiServices = `/apis/${registrationGroup}/v1/apiservices`;

/** A request that the other server received; its handler reads the body. */
export interface Got {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names and values in turn, as received. */
  readonly lines: readonly string[];
}

/** Another server over TLS in this process. */
export interface ExtensionServer {
  readonly port: number;
  /** The authority that signed its certificate, as an APIService states it. */
  readonly caBundle: string;
  /** A bundle that contains only the server's own certificate. */
  readonly leafBundle: string;
  /** The requests since the last `forget`, except those of this server itself. */
  readonly got: Got[];
  /** Number of open connections. */
  readonly connections: number;
  /** Answers a client's request; discovery is answered if it returns false. */
  answer: (got: Got) => unknown;
  /** The same for requests of this server itself, which may arrive at any time. */
  answerOwn: (got: Got) => unknown;
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Forgets the requests, and answers with discovery again. */
  reset(): void;
  /** The last presented client certificate; empty if there was none. */
  readonly shown: { readonly subject?: { readonly CN?: string } };
  stop(): Promise<void>;
}

/** Answers JSON. */
export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** A list of a version's resources. */
export function resourceList(groupVersion: string, ...names: string[]) {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion,
    resources: names.map((name) => ({
      name,
      singularName: name.replace(/s$/, ''),
      namespaced: true,
      kind: 'Thing',
      verbs: ['get', 'list'],
    })),
  };
}

/** The first certificate of a chain in PEM: the server's own. */
const leafOf = (chainPem: string) => chainPem.split(/(?<=-----END CERTIFICATE-----\n)/)[0] ?? '';

/** Whether the request comes from this server itself, not from one of its clients. */
function isOwn({ headers }: IncomingMessage): boolean {
  const user = String(headers['x-remote-user'] ?? '');
  return user === 'system:kube-aggregator' || user === 'system:aggregator';
}

/** Starts a server; its certificate is for Services of namespace `default`. */
export async function startExtensionServer(
  names: readonly string[] = ['ext'],
): Promise<ExtensionServer> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-extension-'));
  const certificates = ensureServingCertificates({
    certDir: directory,
    hosts: names.map((name) => `${name}.default.svc`),
    clock: systemClock,
  });
  const got: Got[] = [];
  let shown: ExtensionServer['shown'] = {};
  const server = https.createServer(
    {
      cert: certificates.certificatePem,
      key: certificates.keyPem,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      request.on('error', () => {});
      response.on('error', () => {});
      shown = (request.socket as TLSSocket).getPeerCertificate() as ExtensionServer['shown'];
      const [path = '', query = ''] = (request.url ?? '').split('?', 2);
      const lines = request.rawHeaders;
      const call = { request, response, path, query: new URLSearchParams(query), lines };
      if (!isOwn(request)) got.push(call);
      if ((isOwn(request) ? extension.answerOwn : extension.answer)(call) !== false) return;
      const [, root, group, version, ...rest] = path.split('/');
      if (root === 'apis' && version !== undefined && rest.length === 0) {
        json(response, resourceList(`${group}/${version}`, 'things'));
      } else json(response, { kind: 'Status', status: 'Failure', code: 404 }, 404);
    },
  );
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => {});
    extension.upgrade(request, socket, head);
  });
  const connections = trackConnections(server, ['secureConnection']);
  const port = await listenLocally(server);
  const extension: ExtensionServer = {
    port,
    caBundle: Buffer.from(certificates.caPem).toString('base64'),
    leafBundle: Buffer.from(leafOf(certificates.certificatePem)).toString('base64'),
    got,
    get connections() {
      return connections.count;
    },
    get shown() {
      return shown;
    },
    answer: () => false,
    answerOwn: () => false,
    upgrade: (_, socket) => void socket.destroy(),
    reset() {
      got.length = 0;
      extension.answer = () => false;
    },
    async stop() {
      await connections.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return extension;
}

/**
 * Starts a server, and an extension server behind its Service `ext`, until the test or file ends.
 */
export async function withExtension(
  change?: ConfigChange,
): Promise<{ readonly server: TestServer; readonly extension: ExtensionServer }> {
  const extension = await untilEnd(startExtensionServer());
  const server = await withServer(change);
  await leadHere(server, 'ext');
  return { server, extension };
}

/** An APIService for a version of a group; `spec` contains its destination. */
export function apiService(group: string, spec: object, version = 'v1'): JsonObject {
  return {
    apiVersion: `${registrationGroup}/v1`,
    kind: 'APIService',
    metadata: { name: `${version}.${group}` },
    spec: { group, version, groupPriorityMinimum: 100, versionPriority: 10, ...spec },
  };
}

/** Creates a Service that leads to this machine, because endpoints may not. */
export async function leadHere(server: Pick<TestServer, 'post'>, name: string): Promise<void> {
  const answer = await server.post('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  });
  if (answer.status !== 201) throw new Error(`service: ${answer.status} ${answer.text}`);
}

/** Waits until the condition of an APIService has the wanted status, and returns the condition. */
export function condition(
  server: Pick<TestServer, 'get'>,
  name: string,
  wanted: { readonly status?: string; readonly reason?: string },
): Promise<JsonObject> {
  return eventually(
    async () => {
      const { body } = await server.get<ResponseOf<APIService>>(`${apiServices}/${name}`);
      const found = body.status?.conditions?.[0];
      const { status = found?.status, reason = found?.reason } = wanted;
      return found?.status === status && found?.reason === reason && found;
    },
    `${name} to be ${JSON.stringify(wanted)}`,
  );
}

/**
 * Assigns a group version to the other server, and waits until that server receives requests for
 * it.
 */
export async function handOver(
  server: Pick<TestServer, 'get' | 'post'>,
  extension: Pick<ExtensionServer, 'port' | 'caBundle'>,
  of: { readonly group: string; readonly version?: string; readonly spec?: object },
): Promise<void> {
  const { group, version = 'v1', spec } = of;
  const service = { namespace: 'default', name: 'ext', port: extension.port };
  const { caBundle } = extension;
  const body = apiService(group, { service, caBundle, ...spec }, version);
  const made = await server.post(apiServices, body);
  if (made.status !== 201) throw new Error(`APIService: ${made.status} ${made.text}`);
  await condition(server, `${version}.${group}`, { status: 'True' });
}
