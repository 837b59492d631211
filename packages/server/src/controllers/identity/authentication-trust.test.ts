import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JsonObject, systemClock } from '@wheelhouse/machinery';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureCa } from '../../compose/serving/serving-tls.ts';
import { type AuthenticationTrust, mergedTrust } from './authentication-trust.ts';

let directory: string;
let one: string;
let other: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'wheelhouse-trust-'));
  one = ensureCa(join(directory, 'one'), systemClock.now()).certificatePem;
  other = ensureCa(join(directory, 'other'), systemClock.now()).certificatePem;
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const requestHeader = (clientCaPem: string): AuthenticationTrust['requestHeader'] => ({
  clientCaPem,
  allowedNames: ['front'],
  usernameHeaders: ['X-Remote-User'],
  uidHeaders: undefined,
  groupHeaders: ['X-Remote-Group'],
  extraHeaderPrefixes: ['X-Remote-Extra-'],
});
const merged = (trust: AuthenticationTrust, found: JsonObject = {}, nowMs = systemClock.now()) =>
  mergedTrust(trust, { found, nowMs });

test('ADM-4: without trust nothing is published', () => {
  expect(merged({})).toEqual({});
});

test('ADM-4: existing entries are kept, and the server’s own are added once', () => {
  const found = {
    'client-ca-file': other,
    'requestheader-allowed-names': '["mine","front"]',
    'requestheader-client-ca-file': other,
    'requestheader-group-headers': 'no list',
    'requestheader-uid-headers': '["X-Uid"]',
    more: 'x',
  };
  const once = merged({ clientCaPem: one + one, requestHeader: requestHeader(one) }, found);
  expect(once).toEqual({
    'client-ca-file': other + one,
    'requestheader-allowed-names': '["mine","front"]',
    'requestheader-client-ca-file': other + one,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  });
  expect(merged({ clientCaPem: one, requestHeader: requestHeader(one) }, once)).toEqual(once);
});

test('ADM-4: expired and invalid authorities are omitted', () => {
  const later = systemClock.now() + 100 * 365 * 24 * 3600 * 1000;
  const found = { 'client-ca-file': `${one}-----BEGIN CERTIFICATE-----\nAAAA\n` };
  expect(merged({}, found)).toEqual({ 'client-ca-file': one });
  expect(merged({ clientCaPem: other }, found, later)).toEqual({});
});

test('TRUST-5: an authority in ambiguous PEM is omitted', () => {
  const second = one.indexOf('\n') + 1;
  const withJunk = `${one.slice(0, second)}!${one.slice(second)}`;
  const endsAsOther = one.replace('END CERTIFICATE', 'END X509 CRL');
  const headed = `${one.slice(0, second)}Proc-Type: 4\n\n${one.slice(second)}`;
  for (const found of [withJunk, endsAsOther, headed]) {
    expect(merged({}, { 'client-ca-file': other + found })).toEqual({ 'client-ca-file': other });
  }
});
