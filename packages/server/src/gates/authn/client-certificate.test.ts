import { dialectOf, type Exchange, randomOf } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  issueClock as clock,
  type Issued,
  issue,
  showing,
} from '../../../../../test/support/issued-certificate.ts';
import { createClientCertificateAuthenticator } from './client-certificate.ts';

const day = 24 * 3600 * 1000;
const clientAuth = x509.ExtendedKeyUsage.clientAuth;

let authority: Issued;
let second: Issued;
let authenticator: ReturnType<typeof createClientCertificateAuthenticator>;

beforeAll(async () => {
  authority = await issue({ subject: 'CN=ca', authority: true, pathLength: 0, toDays: 100 });
  second = await issue({ subject: 'CN=second ca', authority: true, toDays: 100 });
  const bundlePem = [authority, second]
    .map(({ certificate }) => certificate.toString('pem'))
    .join('\n');
  authenticator = createClientCertificateAuthenticator({
    bundlePem: `some text\n${bundlePem}\n`,
    clock,
    dialect: dialectOf('svc'),
  });
});

describe('AUTHN-2: client certificates', () => {
  test('CN is the user name and each O is a group, for both authorities', async () => {
    for (const issuer of [authority, second]) {
      const subject = 'CN=alice, O=dev, O="ops, more\\0Asystem:masters"';
      const leaf = await issue({ subject, issuer, usages: [clientAuth] });
      const user = await authenticator.authenticate(showing(leaf));
      expect(user).toMatchObject({ name: 'alice' });
      expect(user?.groups).toHaveLength(2);
      expect(user?.groups).toContain('dev');
      expect(user?.groups).not.toContain('system:masters');
      expect(Object.keys(user?.extra ?? {})).toEqual(['authentication.svc.io/credential-id']);
    }
  });

  test('a request without a certificate or a common name has no credential', async () => {
    expect(authenticator.authenticate(showing())).toBeUndefined();
    const leaf = await issue({ subject: 'O=dev', issuer: authority, usages: [clientAuth] });
    expect(authenticator.authenticate(showing(leaf))).toBeUndefined();
  });

  test('expired, not yet valid, untrusted, and wrong-usage certificates are rejected', async () => {
    const subject = 'CN=mallory, O=system:masters';
    const stranger = await issue({ subject: 'CN=ca', authority: true });
    const cases: [Parameters<typeof issue>[0], string][] = [
      [{ subject, issuer: authority, usages: [clientAuth], toDays: -0.5 }, 'expired'],
      [{ subject, issuer: authority, usages: [clientAuth], fromDays: 1 }, 'not yet valid'],
      [{ subject, issuer: stranger, usages: [clientAuth] }, 'unknown authority'],
      [{ subject, usages: [clientAuth] }, 'unknown authority'],
      [{ subject, issuer: authority, usages: [x509.ExtendedKeyUsage.serverAuth] }, 'key usage'],
      [
        {
          subject,
          issuer: authority,
          usages: [clientAuth],
          more: [new x509.Extension('1.2.3.4', true, new Uint8Array([5, 0]))],
        },
        'critical extension',
      ],
    ];
    for (const [options, problem] of cases) {
      const leaf = await issue(options);
      expect(() => authenticator.authenticate(showing(leaf, stranger)), problem).toThrow(problem);
    }
  });

  test('intermediates count only if they may sign and the path length allows it', async () => {
    const middle = await issue({ subject: 'CN=middle', issuer: second, authority: true });
    const leaf = await issue({ subject: 'CN=bob', issuer: middle, usages: [clientAuth] });
    expect(authenticator.authenticate(showing(leaf, middle))).toMatchObject({ name: 'bob' });
    expect(() => authenticator.authenticate(showing(leaf))).toThrow('unknown authority');

    const plain = await issue({ subject: 'CN=plain', issuer: second, usages: [clientAuth] });
    const under = await issue({ subject: 'CN=eve', issuer: plain, usages: [clientAuth] });
    expect(() => authenticator.authenticate(showing(under, plain))).toThrow('cannot sign');

    const low = await issue({ subject: 'CN=low', issuer: authority, authority: true });
    const deep = await issue({ subject: 'CN=deep', issuer: low, usages: [clientAuth] });
    expect(() => authenticator.authenticate(showing(deep, low))).toThrow('path length');
  });

  test('a connection is verified once, but its certificate still expires', async () => {
    const local = new FakeClock(clock.now());
    const limited = createClientCertificateAuthenticator({
      bundlePem: authority.certificate.toString('pem'),
      clock: local,
      dialect: dialectOf('svc'),
    });
    const leaf = await issue({ subject: 'CN=carol', issuer: authority, usages: [clientAuth] });
    const exchange = showing(leaf);
    const first = limited.authenticate(exchange);
    expect(limited.authenticate(exchange)).toBe(first);
    local.advance(11 * day);
    expect(() => limited.authenticate(exchange)).toThrow('expired');
  });

  test('damaged certificates are rejected and never authenticate another user', async () => {
    const leaf = await issue({ subject: 'CN=dan', issuer: authority, usages: [clientAuth] });
    const whole = Buffer.from(leaf.certificate.rawData);
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { below } = randomOf(seed);
    for (let round = 0; round < 300; round++) {
      const damaged = Buffer.from(whole);
      const at = below(damaged.length);
      damaged[at] = damaged[at]! ^ (1 << (round % 8));
      const connection = { memo: new Map(), peerCertificates: () => [damaged] };
      const exchange = { header: () => undefined, connection } as unknown as Exchange;
      // Bits outside the signed part may be ignored by the parser; the name never changes.
      let name: string | undefined;
      try {
        name = (await authenticator.authenticate(exchange))?.name;
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(Error);
        continue;
      }
      expect(name, `seed ${seed}, round ${round}`).toBe('dan');
    }
  });
});
