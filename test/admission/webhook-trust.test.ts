import https from 'node:https';
import { rootCertificates } from 'node:tls';
import { pemText } from '@wheelhouse/codec';
import type { SelfSubjectReview } from '@wheelhouse/kinds/types/authentication/v1';
import { issueCertificate } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  authorityExtension,
  commonName,
  der,
  extensionOf,
  forgeCertificate,
  keyOf,
  nameOf,
  organization,
} from '../authentication/forged-certificates.ts';
import {
  conversionBy,
  establishMulti,
  startConversionService,
} from '../custom-kinds/conversion-service.ts';
import { sample } from '../operations/metric-samples.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { listenLocally } from '../support/local-server.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import { hooksOf, startAdmissionService } from './admission-service.ts';

let namespace: string;
const { hooked, unhook } = hooksOf(() => ({ server, service: admission, namespace }));

// Other hosts than those of the conversion service, and therefore another authority.
const admission = await untilEnd(startAdmissionService(['127.0.0.1', 'admission.example.com']));
const conversion = await untilEnd(startConversionService());
const server = await withServer();
beforeEach(async () => {
  await unhook();
  admission.forget();
  namespace = await freshNamespace(server);
});

const create = () => server.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('a'));

describe('a bundle with the serving certificate itself, without its authority', () => {
  test('ADM-2: an admission webhook with that certificate is trusted', async () => {
    const clientConfig = { url: `${admission.url}/v`, caBundle: admission.leafBundle };
    await hooked('validating', { path: '/v', clientConfig });
    expect((await create()).text).toContain('"name":"a"');
    expect(admission.at('/v')).toHaveLength(1);
  });

  test('ADM-2: another server is not trusted', async () => {
    const clientConfig = { url: `${admission.url}/v`, caBundle: conversion.leafBundle };
    await hooked('validating', { path: '/v', clientConfig });
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toContain('x509: certificate signed by unknown authority');
  });

  test('CRD-4: a conversion webhook with that certificate is trusted', async () => {
    const bundle = { url: conversion.url, caBundle: conversion.leafBundle };
    const multi = await establishMulti(server, conversionBy(bundle));
    const made = await server.post(multi.at('v1beta2'), multi.object('v1beta2', 'a'));
    expect(made.status).toBe(201);
    expect(conversion.asked()).toContain('a v1beta2>v1beta1');
  });

  test('AUTHN-9: a token webhook with that certificate is trusted', async () => {
    const webhook = await untilEnd(startWebhookService());
    webhook.answer = ({ body: { apiVersion, kind } }) => ({
      apiVersion,
      kind,
      status: { authenticated: true, user: { username: 'amy' } },
    });
    const authority = webhook.file('leaf.crt', webhook.leafPem);
    const configFile = webhook.kubeconfig({ cluster: { 'certificate-authority': authority } });
    const asking = await withServer({
      authentication: { webhook: { configFile, version: 'v1', cacheTtlMs: 0 } },
    });
    const reviews = '/apis/authentication.svc.io/v1/selfsubjectreviews';
    const body = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
    const answer = await asking.post<ResponseOf<SelfSubjectReview>>(reviews, body, {
      token: 'opaque',
    });
    expect(answer.body.status?.userInfo?.username).toBe('amy');
  });
});

describe('a bundle of many authorities', () => {
  const own = Buffer.from(admission.caBundle, 'base64').toString('latin1');
  const bundleOf = (...certificates: readonly string[]) =>
    Buffer.from([...rootCertificates, ...certificates].join('\n')).toString('base64');

  test('ADM-2, TRUST-2: a webhook of the last one is trusted by all connections', async () => {
    const clientConfig = { url: `${admission.url}/v`, caBundle: bundleOf(own) };
    await hooked('validating', { path: '/v', clientConfig });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const names = Array.from({ length: 8 }, (_, index) => `c${index}`);
    const answers = await Promise.all(names.map((name) => server.post(path, configMap(name))));
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 201));
    expect(admission.at('/v')).toHaveLength(names.length);
  });

  test('ADM-2, TRUST-2: a webhook of another one is not trusted', async () => {
    const clientConfig = { url: `${admission.url}/v`, caBundle: bundleOf() };
    await hooked('validating', { path: '/v', clientConfig });
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toContain('x509: certificate signed by unknown authority');
  });
});

describe('the path of a webhook', () => {
  test.each([
    ['//x/', '/x'],
    ['/%2F/d', '/d'],
    ['/a/../b//c', '/b/c'],
    ['', '/'],
  ])('ADM-2: %j is requested as %j, as a strict router expects', async (path, sent) => {
    await hooked('validating', { path });
    expect((await create()).status).toBe(201);
    expect(admission.received.map((call) => call.path)).toEqual([`${sent}?timeout=10s`]);
  });

  test('CRD-4: of a conversion webhook is cleaned as well', async () => {
    conversion.forget();
    const clientConfig = { url: `${conversion.url}//x/%2F/`, caBundle: conversion.caBundle };
    const multi = await establishMulti(server, conversionBy(conversion, { clientConfig }));
    const made = await server.post(multi.at('v1beta2'), multi.object('v1beta2', 'a'));
    expect(made.status, made.text).toBe(201);
    expect(conversion.received[0]?.path).toBe('/x?timeout=30s');
  });

  test('AUTHN-9: the path of a token webhook is cleaned as well', async () => {
    const webhook = await untilEnd(startWebhookService());
    const configFile = webhook.kubeconfig({ path: '//tokens/%2F/' });
    const asking = await withServer({
      authentication: { webhook: { configFile, version: 'v1', cacheTtlMs: 0 } },
    });
    webhook.answer = () => ({ status: 400 });
    await asking.get('/api/v1/namespaces', { token: 'opaque' });
    expect(webhook.received[0]?.path).toMatch(/^\/tokens\?timeout=/);
  });
});

test('ADM-2: a certificate that names its host only in the common name is refused', async () => {
  const [notBefore, notAfter] = [Date.now() - 60_000, Date.now() + 3_600_000];
  const pair = issueCertificate({ commonName: 'localhost', usage: 'server', notBefore, notAfter });
  const service = https.createServer({ cert: pair.certificatePem, key: pair.keyPem });
  const port = await listenLocally(service);
  try {
    const caBundle = Buffer.from(pair.certificatePem).toString('base64');
    const clientConfig = { url: `https://localhost:${port}/v`, caBundle };
    await hooked('validating', { path: '/v', clientConfig });
    const name = 'apiserver_webhooks_x509_missing_san_total';
    const answer = await create();
    expect(answer.status).toBe(500);
    expect(answer.body.message).toContain(
      'x509: certificate relies on legacy Common Name field, use SANs instead',
    );
    expect(sample((await server.get('/metrics')).text, name)).toBe(1);
  } finally {
    service.close();
  }
});

describe('a certificate with the name of its issuer, as those of Knative’s webhooks', () => {
  const name = nameOf(
    { type: organization, value: 'knative.dev' },
    { type: commonName, value: 'webhook.operators.svc' },
  );
  const self = { subject: name, issuer: name, key: 'operator', signer: 'operator' };
  const root = forgeCertificate({ ...self, extensions: [authorityExtension] });
  const localhost = der(0x82, Buffer.from('localhost'));
  const usage = (last: number) => {
    const id = der(0x06, Buffer.from([0x2b, 6, 1, 5, 5, 7, 3, last]));
    return extensionOf('551d25', der(0x30, id));
  };
  const leafOf = (change: Partial<Parameters<typeof forgeCertificate>[0]> = {}) => {
    const extensions = [extensionOf('551d11', der(0x30, localhost)), usage(1)];
    return forgeCertificate({ ...self, key: 'serving', extensions, ...change });
  };

  /** Answers every review with leave, and returns the answer to a create that it reviews. */
  async function reviewedBy(leaf: Buffer, { host = 'localhost' } = {}) {
    let calls = 0;
    const service = https.createServer(
      {
        cert: pemText('CERTIFICATE', leaf),
        key: keyOf('serving').export({ type: 'pkcs8', format: 'pem' }),
      },
      (request, response) => {
        calls += 1;
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          const { apiVersion, kind, request: review } = JSON.parse(`${Buffer.concat(chunks)}`);
          const answer = { uid: review.uid, allowed: true };
          response.setHeader('content-type', 'application/json');
          response.end(JSON.stringify({ apiVersion, kind, response: answer }));
        });
      },
    );
    const port = await listenLocally(service);
    try {
      const caBundle = Buffer.from(pemText('CERTIFICATE', root)).toString('base64');
      const clientConfig = { url: `https://${host}:${port}/v`, caBundle };
      await hooked('validating', { path: '/v', clientConfig });
      const before = calls;
      const answers = [await create(), await create()];
      return { answer: answers[1]!, calls: calls - before };
    } finally {
      service.closeAllConnections();
      service.close();
      await unhook();
    }
  }

  test('ADM-2: is verified with the bundle', async () => {
    const { answer, calls } = await reviewedBy(leafOf());
    expect(answer.body.message ?? '').toContain('already exists');
    expect(calls).toBeGreaterThan(0);
  });

  const past = der(
    0x30,
    ...['200101000000Z', '210101000000Z'].map((text) => der(0x17, Buffer.from(text))),
  );
  test.each([
    ['signed by another key', leafOf({ signer: 'stranger' }), 'signed by unknown authority'],
    ['self-signed', leafOf({ signer: 'serving' }), 'signed by unknown authority'],
    ['expired', leafOf({ validity: past }), /expired|unknown authority/],
    ['for clients', leafOf({ extensions: [usage(2)] }), 'specifies an incompatible key usage'],
    [
      'for another host',
      leafOf({ extensions: [extensionOf('551d11', der(0x30, der(0x82, Buffer.from('other'))))] }),
      'x509: certificate is valid for other, not localhost',
    ],
  ])('ADM-2, TRUST-5: %s, is refused, and receives nothing', async (_, leaf, message) => {
    const { answer, calls } = await reviewedBy(leaf);
    expect(answer.status).toBe(500);
    expect(answer.body.message).toMatch(message);
    expect(calls).toBe(0);
  });
});
