import { rootCertificates } from 'node:tls';
import { bundleCertificates } from '@wheelhouse/codec';
import { expect, test } from 'vitest';
import { SharedTrust, trustedCertificates } from './shared-trust.ts';

/** A clock on which a slice of work is over each time that it is read. */
function hurriedClock() {
  const clock = {
    reads: 0,
    monotonic() {
      clock.reads += 1;
      return clock.reads * 1000;
    },
  };
  return clock;
}

const ca = rootCertificates.join('\n');

test('TRUST-2: a large CA bundle is loaded in steps, once for all connections', async () => {
  const clock = hurriedClock();
  const trust = new SharedTrust(clock);
  const loading = [trust.optionsFor({ ca }), trust.optionsFor({ ca, host: 'a' })];
  expect(loading.every((options) => options instanceof Promise)).toBe(true);
  const [first, second] = await Promise.all(loading);
  expect(second?.host).toBe('a');
  expect(second?.secureContext).toBe(first?.secureContext);
  expect(clock.reads).toBeGreaterThan(rootCertificates.length / 5);
  const { reads } = clock;
  expect(trust.optionsFor({ ca })).toEqual({ ca, secureContext: first?.secureContext });
  expect(clock.reads).toBe(reads);
});

test('TRUST-2: the certificates of a large bundle are decoded while it is loaded', async () => {
  const expected = bundleCertificates(ca);
  const loaded = await new SharedTrust(hurriedClock()).optionsFor({ ca });
  const decoded = trustedCertificates(loaded);
  expect(decoded).toEqual(expected);
  const again = trustedCertificates(loaded);
  expect(again.every((der, index) => der === decoded[index])).toBe(true);
  expect(trustedCertificates({ ca: rootCertificates.slice(0, 3) })).toEqual(expected.slice(0, 3));
  expect(trustedCertificates({})).toEqual([]);

  const malformed = `${ca}\n${rootCertificates[0]?.replace('MII', 'M!!')}`;
  const partly = await new SharedTrust(hurriedClock()).optionsFor({ ca: malformed });
  expect(() => trustedCertificates(partly)).toThrow('malformed certificate in PEM bundle');
});

test('connections with other CAs or without any do not share a context', () => {
  const trust = new SharedTrust();
  const [one = '', other = ''] = rootCertificates;
  const context = (bundle: string | string[]) => {
    const options = trust.optionsFor({ ca: bundle });
    if (options instanceof Promise) throw new Error('a small bundle needs no promise');
    return options.secureContext;
  };
  const loaded = context(one);
  expect(context(one)).toBe(loaded);
  expect(context([one, other])).not.toBe(loaded);
  expect(context(one)).not.toBe(loaded);
  expect(trust.optionsFor({ host: 'a' })).toEqual({ host: 'a' });
});

test('an invalid client certificate is reported to each connection', async () => {
  expect(() => new SharedTrust().optionsFor({ ca: rootCertificates[0], cert: 'x' })).toThrow();
  const trust = new SharedTrust(hurriedClock());
  expect(() => trust.optionsFor({ ca, cert: 'x' })).toThrow();
  expect(() => trust.optionsFor({ ca, cert: 'x' })).toThrow();
});
