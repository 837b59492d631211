import { expect, test } from 'vitest';
import type { ServerConfig } from '../config.ts';
import { createReportedAddress } from './own-address.ts';

const told = (host: string, advertiseAddress?: string) => {
  const listen = { host, port: 0, tls: 'plaintext' };
  const address = createReportedAddress({ listen, advertiseAddress } as unknown as ServerConfig);
  expect(address.text()).toMatch(/:0$/);
  address.listensOn(7443);
  return address.text();
};

test('clients get the advertised address, else the listening one, and its port', () => {
  expect(told('127.0.0.1')).toBe('127.0.0.1:7443');
  expect(told('::1')).toBe('[::1]:7443');
  expect(told('0.0.0.0', '10.0.0.1')).toBe('10.0.0.1:7443');
  expect(told('127.0.0.1', 'fd00::1')).toBe('[fd00::1]:7443');
});

test('an unspecified address is replaced by one that others can reach', () => {
  const shown = told('0.0.0.0');
  expect(shown).toMatch(/^\d+\.\d+\.\d+\.\d+:7443$/);
  expect(shown.startsWith('127.')).toBe(false);
});
