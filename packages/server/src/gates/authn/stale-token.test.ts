import { generateKeyPairSync } from 'node:crypto';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import type { Credentials } from './contract.ts';
import { auditAnnotationsOf } from './credentials.ts';
import { createServiceAccountAuthenticator } from './service-account.ts';
import { readSigningKey, signClaims, tokenPayload } from './service-account-token.ts';

test('AUTHN-6: a stale but extended token is accepted, annotated, and counted', async () => {
  const clock = new FakeClock();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = readSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  const keys = [key];
  let stale = 0;
  const annotation = 'authentication.svc.io/stale-token';
  const authenticator = createServiceAccountAuthenticator({
    keys: { current: () => keys },
    issuers: ['https://issuer'],
    audiences: ['https://issuer'],
    labelDomain: 'svc.io',
    objects: { find: () => Promise.resolve({ uid: 'u', deletedMs: undefined }) },
    clock,
    stale: { annotation, used: { add: (by) => (stale += by) } },
  });
  const now = clock.now() / 1000;
  const claims = {
    audiences: ['https://issuer'],
    issuer: 'https://issuer',
    notBefore: now,
    expires: now + 10_000,
    warnAfter: now + 3607,
    tokenId: 'id',
    namespace: 'ns',
    serviceAccount: { name: 'reader', uid: 'u' },
    pod: undefined,
    secret: undefined,
    node: undefined,
  };
  const token = signClaims(key, tokenPayload(claims, 'svc.io'));
  const ask = async () => {
    const credentials: Credentials = {
      header: (name) => (name === 'authorization' ? `Bearer ${token}` : undefined),
      headerLines: () => [],
      connection: { memo: new Map(), peerCertificates: () => [] },
    };
    const user = await authenticator.authenticate(credentials);
    return { name: user?.name, note: auditAnnotationsOf(credentials)?.get(annotation) };
  };
  const name = 'system:serviceaccount:ns:reader';
  clock.advance(3_607_000);
  expect(await ask()).toEqual({ name, note: undefined });
  clock.advance(5000);
  const note = `subject: ${name}, seconds after warning threshold: 5`;
  expect(await ask()).toEqual({ name, note });
  expect(stale).toBe(1);
});
