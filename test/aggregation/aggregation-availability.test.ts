import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { ensureCa, issueClientCertificate } from '@wheelhouse/server/testing';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { eventually, startTestServer } from '../support/harness.ts';
import {
  apiService,
  apiServices,
  condition,
  handOver,
  json,
  withExtension,
} from './extension-server.ts';

/** Writes the identity that the server presents to others. */
function identify(user: string): void {
  const ca = ensureCa(join(directory, 'ca'), systemClock.now());
  const pair = issueClientCertificate({ ca, user, groups: [], clock: systemClock });
  writeFileSync(certFile, pair.certificatePem);
  writeFileSync(keyFile, pair.keyPem);
}

const directory = temporaryFolder();
const certFile = join(directory, 'front.crt');
const keyFile = join(directory, 'front.key');
identify('front');
const { server, extension } = await withExtension({
  aggregation: { certificate: { certFile, keyFile } },
});
beforeEach(() => {
  extension.reset();
  extension.answerOwn = (got) => extension.answer(got);
});

const services = '/api/v1/namespaces/default/services';

/** A Service on port 443, or another, without endpoints. */
async function createService(name: string, port = 443): Promise<void> {
  const made = await server.post(services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports: [{ name: 'https', port }] },
  });
  expect(made.status, made.text).toBe(201);
}

async function register(group: string, name: string): Promise<string> {
  const service = { namespace: 'default', name };
  const made = await server.post(apiServices, apiService(group, { service }));
  expect(made.status, made.text).toBe(201);
  return `v1.${group}`;
}

test('ADM-4: the Available condition follows its Service at once', async () => {
  await createService('behind', 80);
  const name = await register('behind.example.com', 'behind');
  const about = 'service/behind in "default"';
  const port = await condition(server, name, { reason: 'ServicePortError' });
  expect(port).toMatchObject({
    status: 'False',
    message: `${about} is not listening on port 443`,
  });
  await server.remove(`${services}/behind`);
  const gone = await condition(server, name, { reason: 'ServiceNotFound' });
  expect(gone.message).toBe(`${about} is not present`);
  expect(gone.lastTransitionTime).toBe(port.lastTransitionTime);
  await createService('behind');
  const none = await condition(server, name, { reason: 'EndpointsNotFound' });
  expect(none.message).toBe(`cannot find endpoints for ${about}`);
  const endpoints = await server.post('/api/v1/namespaces/default/endpoints', {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'behind' },
    subsets: [{ notReadyAddresses: [{ ip: '192.0.2.1' }], ports: [{ name: 'https', port: 443 }] }],
  });
  expect(endpoints.status, endpoints.text).toBe(201);
  const missing = await condition(server, name, { reason: 'MissingEndpoints' });
  expect(missing.message).toBe(`endpoints for ${about} have no addresses with port name "https"`);
  const answer = await server.get('/apis/behind.example.com/v1/things');
  expect([answer.status, answer.text]).toEqual([503, 'service unavailable\n']);
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  const labels = 'code="503",component="aggregator",group="behind.example.com"';
  const { text } = await server.get('/metrics');
  expect(text).toContain(`apiserver_request_terminations_total{${labels},resource="",`);
});

test('ADM-4: a server that does not answer discovery is unavailable until it does', async () => {
  const group = 'silent.example.com';
  let status = 404;
  extension.answer = ({ path, response }) => {
    if (path !== `/apis/${group}/v1`) return false;
    json(response, {}, status);
    return true;
  };
  const { port, caBundle } = extension;
  const service = { namespace: 'default', name: 'ext', port };
  await server.post(apiServices, apiService(group, { service, caBundle }));
  const found = await condition(server, `v1.${group}`, { reason: 'FailedDiscoveryCheck' });
  const url = `https://localhost:${port}/apis/${group}/v1`;
  expect(found).toMatchObject({
    status: 'False',
    message: `failing or missing response from ${url}: bad status from ${url}: 404`,
  });
  status = 200;
  const passed = await condition(server, `v1.${group}`, { reason: 'Passed' });
  expect(passed).toMatchObject({ status: 'True', message: 'all checks passed' });
});

test('ADM-4: an unreachable server is reported in kube-apiserver’s words', async () => {
  const group = 'closed.example.com';
  const service = { namespace: 'default', name: 'ext', port: 1 };
  await server.post(apiServices, apiService(group, { service, insecureSkipTLSVerify: true }));
  const { message } = await condition(server, `v1.${group}`, { reason: 'FailedDiscoveryCheck' });
  const url = `https://localhost:1/apis/${group}/v1`;
  const dialled = 'dial tcp localhost:1: connect: connection refused';
  expect(message).toBe(`failing or missing response from ${url}: Get "${url}": ${dialled}`);
});

test('ADM-4: metrics show unavailable APIServices and count transitions', async () => {
  const group = 'counted.example.com';
  let status = 200;
  extension.answer = ({ path, response }) => {
    if (path !== `/apis/${group}/v1`) return false;
    json(response, {}, status);
    return true;
  };
  await handOver(server, extension, { group });
  const metric = async (line: string) => {
    const { text } = await server.get('/metrics');
    return text.split('\n').includes(line);
  };
  expect(await metric(`aggregator_unavailable_apiservice{name="v1.${group}"} 0`)).toBe(true);
  status = 500;
  // Any change of the APIService triggers a check.
  await server.patch(`${apiServices}/v1.${group}`, { metadata: { labels: { a: 'b' } } }, 'merge');
  await condition(server, `v1.${group}`, { status: 'False' });
  expect(await metric(`aggregator_unavailable_apiservice{name="v1.${group}"} 1`)).toBe(true);
  const counter = 'aggregator_unavailable_apiservice_total';
  const labels = `name="v1.${group}",reason="FailedDiscoveryCheck"`;
  expect(await metric(`${counter}{${labels}} 1`)).toBe(true);
  await server.remove(`${apiServices}/v1.${group}`);
  await eventually(
    async () => !(await server.get('/metrics')).text.includes(`apiservice{name="v1.${group}"`),
    'the gauge to go',
  );
});

test('ADM-4: aggregated servers see the proxy client certificate, and its replacement', async () => {
  const group = 'shown.example.com';
  await handOver(server, extension, { group });
  const path = `/apis/${group}/v1`;
  expect((await server.get(path)).status).toBe(200);
  expect(extension.shown.subject?.CN).toBe('front');
  identify('renewed');
  await eventually(async () => {
    await server.get(path);
    return extension.shown.subject?.CN === 'renewed';
  }, 'the new certificate');
  writeFileSync(keyFile, 'no key');
  await new Promise((resolve) => setTimeout(resolve, 1200));
  expect((await server.get(path)).status).toBe(200);
  expect(extension.shown.subject?.CN).toBe('renewed');
});

test('ADM-4: a proxy client certificate without its key stops the start', async () => {
  const certificate = { certFile, keyFile: join(directory, 'other.key') };
  writeFileSync(certificate.keyFile, 'no key');
  await expect(startTestServer({ aggregation: { certificate } })).rejects.toThrow(
    `${certificate.keyFile} contains no private key`,
  );
});
