import { expect, test } from 'vitest';
import { readOptions } from '../command-line.ts';

test('an advertised address of another family than Services cannot be an endpoint', () => {
  const args = ['--service-cluster-ip-range=fd00::/112', '--advertise-address=192.0.2.1'];
  expect(() => readOptions(args)).toThrow(
    'service IP family "fd00::/112" must match public address family "192.0.2.1"',
  );
  expect(readOptions([...args, '--endpoint-reconciler-type=none']).kind).toBe('options');
  expect(readOptions([...args, '--advertise-address=2001:db8::1']).kind).toBe('options');
});
