import { certificateSigningRequest } from '@wheelhouse/kinds/testing';
import type { CertificateSigningRequest } from '@wheelhouse/kinds/types/certificates/v1';
import { dialectOf } from '@wheelhouse/machinery';
import type { ResponseOf } from '../support/harness.ts';
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { expect, test } from 'vitest';
import { issue } from '../support/issued-certificate.ts';
import { withServer } from '../support/with-server.ts';

const collection = '/apis/certificates.svc.io/v1/certificatesigningrequests';
const sample = (name: string, spec: object = {}) => {
  const object = certificateSigningRequest(dialectOf('svc')).example?.();
  const own = object?.['spec'] as { readonly request: string };
  return { ...object, metadata: { name }, spec: { ...own, ...spec } };
};

const server = await withServer();

test('API-1: a certificate request records its requester and is immutable', async () => {
  const lie = { username: 'somebody-else', groups: ['lie'], expirationSeconds: 3600 };
  const made = await server.post(collection, sample('asked', lie));
  expect(made.status, made.text).toBe(201);
  expect(made.body.spec).toMatchObject({ username: 'system:admin', expirationSeconds: 3600 });
  expect(made.body.spec.groups).not.toContain('lie');
  expect(made.body.status).toEqual({});
  const changed = { ...made.body, spec: { ...made.body.spec, signerName: 'example.com/other' } };
  const updated = await server.put(`${collection}/asked`, changed);
  expect(updated.status, updated.text).toBe(200);
  expect(updated.body.spec.signerName).toBe('example.com/signer');
  const table = await server.get(`${collection}/asked`, {
    accept: 'application/json;as=Table;v=v1;g=meta.svc.io',
  });
  expect(table.body.rows[0].cells.slice(2)).toEqual([
    'example.com/signer',
    'system:admin',
    '60m',
    'Pending',
  ]);
  const list = await server.get(`${collection}?fieldSelector=spec.signerName=example.com/none`);
  expect(list.body.items).toEqual([]);
});

test('API-1: approval and status are separate subresources with separate fields', async () => {
  const made = await server.post(collection, sample('decided'));
  const approved = { type: 'Approved', status: 'True', reason: 'Test', message: 'by a test' };
  const path = `${collection}/decided`;
  const early = { ...made.body, status: { conditions: [approved] } };
  const refused = await server.put(`${path}/status`, early);
  expect(refused.status).toBe(422);
  expect(refused.body.details.causes).toEqual([
    {
      reason: 'FieldValueForbidden',
      message: 'Forbidden: updates may not add a condition of type "Approved"',
      field: 'status.conditions',
    },
  ]);
  const issuedTo = await issue({ subject: 'CN=issued' });
  const certificate = btoa(`${issuedTo.certificate.toString('pem')}\n`);
  const status = { conditions: [approved], certificate: 'aWdub3JlZA==' };
  const decided = await server.put<ResponseOf<CertificateSigningRequest>>(`${path}/approval`, {
    ...made.body,
    status,
  });
  expect(decided.status, decided.text).toBe(200);
  expect(decided.body.status.certificate).toBeUndefined();
  const [condition] = decided.body.status.conditions;
  expect(condition).toMatchObject(approved);
  expect(condition.lastTransitionTime).toMatch(/Z$/);
  const issued = await server.patch(`${path}/status`, { status: { certificate } }, 'merge');
  expect(issued.status, issued.text).toBe(200);
  expect(issued.body.status).toEqual({ conditions: [condition], certificate });
  const undone = await server.patch(`${path}/approval`, { status: { conditions: [] } }, 'merge');
  expect(undone.status).toBe(422);
});

test('API-1: a signer need not repeat the times of a decision', async () => {
  const made = await server.post(collection, sample('signed'));
  const approved = { type: 'Approved', status: 'True', reason: 'Test', message: 'by a test' };
  const path = `${collection}/signed`;
  const decided = await server.put(`${path}/approval`, {
    ...made.body,
    status: { conditions: [approved] },
  });
  const issuedTo = await issue({ subject: 'CN=issued' });
  const certificate = btoa(`${issuedTo.certificate.toString('pem')}\n`);
  const status = { conditions: [{ ...approved, message: 'by a signer' }], certificate };
  const signed = await server.put(`${path}/status`, { ...decided.body, status });
  expect(signed.status, signed.text).toBe(200);
  expect(signed.body.status).toEqual({ ...decided.body.status, certificate });
});

test('API-1: an unsigned request or one without known usages is refused', async () => {
  const pem = Buffer.from(sample('x').spec.request, 'base64').toString();
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const cases: readonly (readonly [object, string, RegExp])[] = [
    [{ request: base64('no PEM') }, 'spec.request', /PEM block type must be CERTIFICATE REQUEST$/],
    [{ request: base64(pem.replace('MIHN', 'MIHO')) }, 'spec.request', /malformed/],
    [
      { request: base64(pem.replace('ZXhhbXBs', 'ZXhhbXBt')) },
      'spec.request',
      /ECDSA verification failure$/,
    ],
    [{ usages: [] }, 'spec.usages', /^Required value$/],
    [{ usages: ['juggling'] }, 'spec.usages[0]', /^Unsupported value: "juggling"/],
    [{ usages: ['any', 'any'] }, 'spec.usages[1]', /^Duplicate value: "any"$/],
    [{ signerName: 'nobody' }, 'spec.signerName', /must be a fully qualified domain and path/],
    [{ expirationSeconds: 599 }, 'spec.expirationSeconds', /less than 600 seconds/],
  ];
  for (const [spec, field, message] of cases) {
    const answer = await server.post(collection, sample('wrong', spec));
    expect(answer.status, field).toBe(422);
    expect(answer.body.details.causes[0].field).toBe(field);
    expect(answer.body.details.causes[0].message).toMatch(message);
  }
});

/** A request signed with RSA, in base64 as in a body. */
async function rsaRequest(algorithm: { readonly name: string; readonly hash: string }) {
  const rsa = { ...algorithm, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
  const keys = await webcrypto.subtle.generateKey(rsa, true, ['sign', 'verify']);
  const pss = algorithm.name === 'RSA-PSS' ? { saltLength: 32 } : {};
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    {
      name: 'CN=rsa',
      keys: keys as webcrypto.CryptoKeyPair,
      signingAlgorithm: { ...algorithm, ...pss },
    },
    webcrypto as never,
  );
  return Buffer.from(request.toString('pem')).toString('base64');
}

test.each([
  { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' },
  { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  { name: 'RSA-PSS', hash: 'SHA-256' },
])('API-1: a request may be signed by $name with $hash', async (algorithm) => {
  const request = await rsaRequest(algorithm);
  const name = `${algorithm.name}-${algorithm.hash}`.toLowerCase().replaceAll('_', '-');
  const made = await server.post(collection, sample(name, { request }));
  expect(made.status, made.text).toBe(201);
});
