import { once } from 'node:events';
import http2 from 'node:http2';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { pemText } from '@wheelhouse/codec';
import type { SelfSubjectReview } from '@wheelhouse/kinds/types/authentication/v1';
import type { StatusCause } from '@wheelhouse/kinds/types/meta/v1';
import { describe, expect, test } from 'vitest';
import { temporaryFile } from '../support/cleanup.ts';
import type { Answer, ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  type Attribute,
  authority,
  commonName,
  forgeCertificate,
  forgeRequest,
  nameOf,
  organization,
} from './forged-certificates.ts';

const requests = '/apis/certificates.svc.io/v1/certificatesigningrequests';
const signerName = 'svc.io/kube-apiserver-client';
const requestType = 'CERTIFICATE REQUEST';

const bundle = temporaryFile('ca.crt', authority.pem());
const server = await withServer({ authentication: { clientCaFile: bundle } });

let count = 0;

/** Creates a request for a client certificate from a PEM text. */
function ask(pem: string) {
  count += 1;
  return server.post(requests, {
    apiVersion: 'certificates.svc.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `asked-${count}` },
    spec: { signerName, request: Buffer.from(pem).toString('base64'), usages: ['client auth'] },
  });
}

/** Gets a path with a client certificate for a name of arbitrary bytes. */
async function getAs(name: Buffer, path: string): Promise<Pick<Answer, 'status' | 'body'>> {
  return send(name, { method: 'GET', path });
}

async function send(
  name: Buffer,
  { method, path, body }: { method: string; path: string; body?: object },
): Promise<Pick<Answer<ResponseOf<SelfSubjectReview>>, 'status' | 'body'>> {
  const request = https.request(new URL(path, server.url), {
    method,
    ...authority.issue(name),
    agent: false,
    rejectUnauthorized: false,
    headers: { 'content-type': 'application/json' },
  });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(request, 'response');
  return { status: response.statusCode, body: JSON.parse(await text(response)) };
}

/** The user that the server derives from the holder's certificate. */
async function whoIs(name: Buffer) {
  const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
  const path = '/apis/authentication.svc.io/v1/selfsubjectreviews';
  const answer = await send(name, { method: 'POST', path, body: review });
  expect(answer.status).toBe(201);
  return answer.body.status.userInfo;
}

const person: Attribute = { type: commonName, value: 'mallory' };
const group = (value: string | Buffer, tag?: number): Attribute =>
  tag === undefined ? { type: organization, value } : { type: organization, tag, value };
const masters = 'system:masters';
const utf16 = (value: string) => Buffer.from(value, 'utf16le').swap16();

test('TRUST-5: a signature with SHA-1, which can be forged, proves nothing', async () => {
  const request = https.get(new URL('/api/v1/secrets', server.url), {
    ...authority.issue(nameOf(person, group(masters)), 'sha1'),
    // OpenSSL's default level presents no such certificate.
    ciphers: 'DEFAULT:@SECLEVEL=0',
    agent: false,
    rejectUnauthorized: false,
  });
  const [response] = await once(request, 'response');
  response.resume();
  expect(response.statusCode).toBe(401);
});

describe('TRUST-5: a subject has one reading', () => {
  test('TRUST-5: a byte-order mark is part of a group’s name everywhere', async () => {
    const marked = `\ufeff${masters}`;
    for (const attribute of [group(marked), group(utf16(marked), 0x1e)]) {
      const name = nameOf(person, attribute);
      const asked = await ask(pemText(requestType, forgeRequest({ name })));
      expect(asked.status, asked.text).toBe(201);
      expect((await getAs(name, '/api/v1/secrets')).status).toBe(403);
      const { groups } = await whoIs(name);
      expect(groups).toEqual([marked, 'system:authenticated']);
    }
  });

  test.each<[string, readonly Attribute[]]>([
    ['UTF8String', [group(masters)]],
    ['PrintableString, of several', [group('a', 0x13), group(masters, 0x13)]],
    ['TeletexString', [group(masters, 0x14)]],
    ['IA5String', [group(masters, 0x16)]],
    ['BMPString', [group(utf16(masters), 0x1e)]],
  ])(
    'TRUST-5: a certificate that authenticates as system:masters cannot be requested (%s)',
    async (_, groups) => {
      const name = nameOf(person, ...groups);
      const asked = await ask(pemText(requestType, forgeRequest({ name })));
      expect(asked.status, asked.text).toBe(403);
      expect((await getAs(name, '/api/v1/secrets')).status).toBe(200);
    },
  );

  test.each<[string, Buffer]>([
    ['a NUL', nameOf(person, group(`${masters}\0`))],
    ['invalid UTF-8', nameOf(person, group(Buffer.from([0x61, 0xff])))],
    ['an overlong form', nameOf(person, group(Buffer.from([0xc1, 0xb3, 0x79])))],
    ['Latin-1 in a TeletexString', nameOf(person, group(Buffer.from([0x61, 0xe4]), 0x14))],
    ['a terminated BMPString', nameOf(person, group(utf16(`${masters}\0`), 0x1e))],
    ['an odd BMPString', nameOf(person, group(Buffer.from([0, 0x61, 0]), 0x1e))],
    ['a surrogate in a BMPString', nameOf(person, group(utf16('\ud83d\ude00'), 0x1e))],
    ['a UniversalString', nameOf(person, group(Buffer.from([0, 0, 0, 0x61]), 0x1c))],
    ['a VisibleString', nameOf(person, group('a', 0x1a))],
    ['a PrintableString that is not', nameOf(person, group('a_b', 0x13))],
    ['an integer', nameOf(person, group(Buffer.from([1]), 0x02))],
    ['a padded identifier', nameOf(person, { type: '5504800a', value: masters })],
    ['two common names', nameOf(person, { type: commonName, value: 'system:admin' })],
  ])('TRUST-5: a subject with %s is refused everywhere', async (_, name) => {
    const asked = await ask(pemText(requestType, forgeRequest({ name })));
    expect(asked.status, asked.text).toBe(422);
    expect(asked.body.details.causes[0].field).toBe('spec.request');
    const answer = await getAs(name, '/api/v1/secrets').catch((error: unknown) => error);
    // The host's own library may refuse to send or receive certificates that it cannot parse.
    if (answer instanceof Error)
      expect(String(answer)).toMatch(/asn1|ASN1|X509|reset|hang up|PEM/i);
    else expect((answer as { status: number }).status).toBe(401);
  });
});

describe('TRUST-5: a certificate request is one block in one encoding', () => {
  const named = (value: string) =>
    pemText(requestType, forgeRequest({ name: nameOf({ type: commonName, value }) }));
  const honest = named('honest');
  const evil = pemText(requestType, forgeRequest({ name: nameOf(person, group(masters)) }));
  const raw = forgeRequest({ name: nameOf(person) });
  const flat = (content: Buffer) =>
    `-----BEGIN ${requestType}-----\n${content.toString('base64')}\n-----END ${requestType}-----\n`;
  const longLength = Buffer.concat([
    Buffer.from([0x30, 0x84, 0, 0]),
    raw.subarray(raw[1] === 0x82 ? 2 : 1),
  ]);

  test.each<[string, string]>([
    ['two blocks', honest + evil],
    ['two blocks, the other way', evil + honest],
    ['a block of another type before', `${pemText('CERTIFICATE', raw)}${honest}`],
    ['a block of another type behind', `${honest}${pemText('CERTIFICATE', raw)}`],
    ['a block inside', honest.replace('\n', `\n${evil}`)],
    ['the beginning of another', `${honest}-----BEGIN ${requestType}-----\n`],
    ['the end of another', `-----END ${requestType}-----\n${honest}`],
    ['headers', honest.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\n\n')],
    ['a byte-order mark', `\ufeff${honest}`],
    ['a first line that is not alone', `x${honest}`],
    ['a last line that is not alone', `${honest.trimEnd()}x\n`],
    ['junk in the base64', honest.replace('\nMI', '\nM!I')],
    ['a blank inside a line', honest.replace('\nMI', '\nM I')],
    ['an early end of the base64', honest.replace('\nMI', '\nMA==\nMI')],
    ['another last line', honest.replace('END CERTIFICATE REQUEST', 'END NEW CERTIFICATE REQUEST')],
    ['the older type', honest.replaceAll(requestType, `NEW ${requestType}`)],
    ['data behind the DER', flat(Buffer.concat([raw, Buffer.from([5, 0])]))],
    ['a length that is not minimal', flat(longLength)],
  ])('TRUST-5: with %s it is refused', async (_, pem) => {
    const asked = await ask(pem);
    expect(asked.status, asked.text).toBe(422);
    expect(asked.body.details.causes.map((cause: StatusCause) => cause.field)).toEqual([
      'spec.request',
    ]);
    expect((await server.get(`${requests}/asked-${count}`)).status).toBe(404);
  });

  test.each<[string, string]>([
    ['text around the block', `Certificate Request:\n    Data: -\n${honest}bye\n`],
    ['lines that end as on Windows', honest.replaceAll('\n', '\r\n')],
    ['no newline at its end', honest.trimEnd()],
    ['one long line', flat(raw)],
  ])('TRUST-5: with %s it is accepted', async (_, pem) => {
    const asked = await ask(pem);
    expect(asked.status, asked.text).toBe(201);
  });
});

describe('TRUST-5: a certificate issued in the authority’s name by another key', () => {
  const cert = pemText(
    'CERTIFICATE',
    forgeCertificate({
      subject: nameOf(person, group(masters)),
      issuer: authority.name,
      key: 'client',
      signer: 'client',
    }),
  );
  const { key } = authority.issue(nameOf(person));

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('is 401 over HTTP/1.1 and %s', async (version) => {
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
    const statuses: (number | undefined)[] = [];
    for (const path of ['/api', '/apis']) {
      const options = { agent, cert, key, minVersion: version, maxVersion: version };
      const request = https.get(new URL(path, server.url), options);
      const [response] = await once(request, 'response');
      statuses.push(response.statusCode);
      await text(response);
    }
    agent.destroy();
    expect(statuses).toEqual([401, 401]);
  });

  test('is 401 over HTTP/2', async () => {
    const session = http2.connect(server.url, { cert, key, rejectUnauthorized: false });
    const stream = session.request({ ':path': '/api' });
    const [headers] = await once(stream, 'response');
    session.destroy();
    expect(headers[':status']).toBe(401);
  });
});

describe('AUTHN-2: an authority without basic constraints', () => {
  const middle = nameOf({ type: commonName, value: 'middle' });

  async function statusWith(options: {
    readonly root: 1 | 2 | 3;
    readonly intermediate?: 1 | 2 | 3;
  }): Promise<number | undefined> {
    const { name } = authority;
    const self = { subject: name, issuer: name, key: 'authority', signer: 'authority' };
    const root = pemText('CERTIFICATE', forgeCertificate({ ...self, version: options.root }));
    const clientCaFile = temporaryFile('versioned.crt', root);
    const { url } = await withServer({ authentication: { clientCaFile, anonymous: false } });
    const isDirect = options.intermediate === undefined;
    const leaf = forgeCertificate({
      subject: nameOf(person, group(masters)),
      issuer: isDirect ? name : middle,
      key: 'client',
      signer: isDirect ? 'authority' : 'middle',
    });
    const between = isDirect
      ? []
      : [
          forgeCertificate({
            ...self,
            subject: middle,
            key: 'middle',
            version: options.intermediate,
          }),
        ];
    const cert = [leaf, ...between].map((der) => pemText('CERTIFICATE', der)).join('');
    const { key } = authority.issue(nameOf(person));
    const sent = https.get(new URL('/api', url), {
      cert,
      key,
      agent: false,
      rejectUnauthorized: false,
    });
    const [response] = await once(sent, 'response');
    await text(response);
    return response.statusCode;
  }

  test.each([1, 2] as const)('signs client certificates as a root of version %d', async (root) => {
    expect(await statusWith({ root })).toBe(200);
  });

  test('signs nothing as a root of version 3', async () => {
    expect(await statusWith({ root: 3 })).toBe(401);
  });

  test.each([1, 3] as const)('signs nothing as an intermediate of version %d', async (version) => {
    expect(await statusWith({ root: 1, intermediate: version })).toBe(401);
  });
});
