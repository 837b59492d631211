import { mkdtempSync, rmSync } from 'node:fs';
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { beforeEach, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { listenLocally } from '../support/local-server.ts';
import { withServer } from '../support/with-server.ts';
import { configMapRule } from './admission-service.ts';

/** Connections to webhooks: one for all calls with HTTP/2, or several with HTTP/1.1. */

type Handle = (request: Http2ServerRequest, response: Http2ServerResponse, text: string) => void;

interface Service {
  readonly url: string;
  readonly caBundle: string;
  /** All connections so far. */
  readonly connections: TLSSocket[];
  readonly sessions: ServerHttp2Session[];
  readonly versions: string[];
  handle: Handle;
  stop(): Promise<void>;
}

const allow: Handle = (_request, response, text) => {
  const { apiVersion, kind, request } = JSON.parse(text);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ apiVersion, kind, response: { uid: request.uid, allowed: true } }));
};

async function startService(protocol: 'http1' | 'http2'): Promise<Service> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-http2-'));
  const pair = ensureServingCertificates({
    ...{ certDir: directory, hosts: ['127.0.0.1'], clock: systemClock },
  });
  const certificate = { cert: pair.certificatePem, key: pair.keyPem };
  const answer = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const chunks: Buffer[] = [];
    service.versions.push(request.httpVersion);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => service.handle(request, response, Buffer.concat(chunks).toString()));
  };
  const server =
    protocol === 'http2'
      ? createSecureServer(certificate, answer)
      : createServer(certificate, answer as never);
  const service: Service = {
    url: '',
    caBundle: Buffer.from(pair.caPem).toString('base64'),
    connections: [],
    sessions: [],
    versions: [],
    handle: allow,
    async stop() {
      for (const socket of service.connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true, force: true });
    },
  };
  server.on('secureConnection', (socket) => service.connections.push(socket));
  server.on('session', (session) => service.sessions.push(session));
  const port = await listenLocally(server);
  return Object.assign(service, { url: `https://127.0.0.1:${port}` });
}

const [server, http2, http1] = await Promise.all([
  withServer(),
  untilEnd(startService('http2')),
  untilEnd(startService('http1')),
]);
beforeEach(() => {
  for (const service of [http2, http1]) {
    service.handle = allow;
    service.versions.length = 0;
  }
});

const group = 'admissionregistration.svc.io';
const configurations = `/apis/${group}/v1/validatingwebhookconfigurations`;
let made = 0;
let maps = 0;
/** Makes names of ConfigMaps unique. */
const fresh = () => {
  maps += 1;
  return maps;
};

/**
 * Creates a namespace whose ConfigMaps the service validates; returns a function that creates one
 * there.
 */
async function hooked(service: Service, timeoutSeconds = 10) {
  made += 1;
  const namespace = await freshNamespace(server);
  const name = `hook-${made}`;
  const kind = { apiVersion: `${group}/v1`, kind: 'ValidatingWebhookConfiguration' };
  const namespaceSelector = { matchLabels: { 'svc.io/metadata.name': namespace } };
  const hook = {
    ...{ name: 'a.example.com', rules: [configMapRule], sideEffects: 'None', timeoutSeconds },
    ...{ admissionReviewVersions: ['v1'], failurePolicy: 'Fail', namespaceSelector },
    clientConfig: { url: `${service.url}/validate`, caBundle: service.caBundle },
  };
  const answer = await server.post(configurations, {
    ...kind,
    metadata: { name },
    webhooks: [hook],
  });
  expect(answer.status, answer.text).toBe(201);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const create = (map: string) => server.post(path, configMap(map));
  await eventually(async () => {
    await create(`probe-${fresh()}`);
    return service.versions.length > 0;
  }, 'the webhook is not asked');
  return { create, forget: () => server.remove(`${configurations}/${name}`) };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `m-${index}`);

test('ADM-2: parallel calls share one connection of a service that speaks HTTP/2', async () => {
  const { create, forget } = await hooked(http2);
  const waiting: (() => void)[] = [];
  // None is answered before all have arrived, so they must be concurrent.
  http2.handle = (...call) => {
    waiting.push(() => allow(...call));
    if (waiting.length === 20) for (const answer of waiting) answer();
  };
  const answers = await Promise.all(names(20).map(create));
  expect(answers.map(({ status }) => status)).toEqual(names(20).map(() => 201));
  expect(new Set(http2.versions)).toEqual(new Set(['2.0']));
  expect(http2.connections).toHaveLength(1);
  await forget();
});

test('ADM-2: a connection that the service gives up is replaced by the next call', async () => {
  const { create, forget } = await hooked(http2);
  const before = http2.connections.length;
  http2.sessions.at(-1)?.goaway();
  http2.sessions.at(-1)?.close();
  await eventually(async () => (await create(`n-${fresh()}`)).status === 201, 'no call passes');
  http2.connections.at(-1)?.destroy();
  await eventually(async () => (await create(`o-${fresh()}`)).status === 201, 'no call passes');
  expect(http2.connections.length).toBe(before + 2);
  expect(new Set(http2.versions)).toEqual(new Set(['2.0']));
  await forget();
});

test('ADM-2: a call that is refused unprocessed is retried; an interrupted one is not', async () => {
  const { create, forget } = await hooked(http2);
  let calls = 0;
  const refusedStream = 7;
  http2.handle = (request, ...rest) => {
    calls += 1;
    if (calls === 1) request.stream.close(refusedStream);
    else allow(request, ...rest);
  };
  expect((await create('refused')).status).toBe(201);
  expect(calls).toBe(2);
  http2.handle = (request) => {
    calls += 1;
    request.stream.close(2);
  };
  const cut = await create('cut');
  expect(cut.status).toBe(500);
  expect(cut.body.message).toContain('failed calling webhook "a.example.com"');
  expect(calls).toBe(3);
  await forget();
});

test('ADM-2: a body that a reset or a lost connection interrupts is no answer', async () => {
  const { create, forget } = await hooked(http2);
  const failed =
    'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: ';
  http2.handle = ({ stream }, response) => {
    response.write('{}', () => stream.close(2));
  };
  const reset = await create('reset');
  expect(reset.body.message).toMatch(
    new RegExp(
      `^${failed}stream error when reading response body, may be caused by closed connection. ` +
        'Please retry. Original error: stream error: stream ID \\d+; INTERNAL_ERROR; received from peer$',
    ),
  );
  http2.handle = (_request, response) => {
    response.write('{}', () => http2.sessions.at(-1)?.destroy());
  };
  const lost = await create('lost');
  expect(lost.body.message).toBe(
    `${failed}unexpected error when reading response body. Please retry. Original error: unexpected EOF`,
  );
  await forget();
});

test('ADM-2: a timeout ends one call and keeps the connection', async () => {
  const { create, forget } = await hooked(http2, 1);
  const before = http2.connections.length;
  http2.handle = () => {};
  const late = await create('late');
  expect(late.status).toBe(500);
  expect(late.body.message).toContain('context deadline exceeded');
  http2.handle = allow;
  expect((await create('later')).status).toBe(201);
  expect(http2.connections).toHaveLength(before);
  await forget();
});

test('ADM-2: a service without HTTP/2 is called with HTTP/1.1 on one connection', async () => {
  const { create, forget } = await hooked(http1);
  expect(http1.connections).toHaveLength(1);
  for (const name of names(3)) expect((await create(name)).status).toBe(201);
  expect(new Set(http1.versions)).toEqual(new Set(['1.1']));
  // The connection that negotiated the protocol also serves the calls.
  expect(http1.connections).toHaveLength(1);
  await forget();
});
