import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JsonObject, runInOnePiece, systemClock } from '@wheelhouse/machinery';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureCa } from '../../compose/serving/serving-tls.ts';
import { type AuthenticationTrust, mergedTrust } from './authentication-trust.ts';

let directory: string;
let firstPem: string;
let secondPem: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'wheelhouse-trust-'));
  firstPem = ensureCa(join(directory, 'one'), systemClock.now()).certificatePem;
  secondPem = ensureCa(join(directory, 'other'), systemClock.now()).certificatePem;
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
  runInOnePiece(mergedTrust(trust, { found, nowMs }));

test('ADM-4: without trust nothing is published', () => {
  expect(merged({})).toEqual({});
});

test('ADM-4: existing entries are kept, and the server’s own are added once', () => {
  const found = {
    'client-ca-file': secondPem,
    'requestheader-allowed-names': '["mine","front"]',
    'requestheader-client-ca-file': secondPem,
    'requestheader-group-headers': 'no list',
    'requestheader-uid-headers': '["X-Uid"]',
    more: 'x',
  };
  const once = merged(
    { clientCaPem: firstPem + firstPem, requestHeader: requestHeader(firstPem) },
    found,
  );
  expect(once).toEqual({
    'client-ca-file': secondPem + firstPem,
    'requestheader-allowed-names': '["mine","front"]',
    'requestheader-client-ca-file': secondPem + firstPem,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  });
  expect(merged({ clientCaPem: firstPem, requestHeader: requestHeader(firstPem) }, once)).toEqual(
    once,
  );
});

test('ADM-4: expired and invalid authorities are omitted', () => {
  const later = systemClock.now() + 100 * 365 * 24 * 3600 * 1000;
  const found = { 'client-ca-file': `${firstPem}-----BEGIN CERTIFICATE-----\nAAAA\n` };
  expect(merged({}, found)).toEqual({ 'client-ca-file': firstPem });
  expect(merged({ clientCaPem: secondPem }, found, later)).toEqual({});
});

test('TRUST-2: many authorities and names are merged in steps', () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `name-${index % 10_000}`);
  const found = {
    'client-ca-file': secondPem.repeat(300),
    'requestheader-allowed-names': JSON.stringify(names),
  };
  const trust = { clientCaPem: firstPem, requestHeader: requestHeader(firstPem) };
  const work = mergedTrust(trust, { found, nowMs: systemClock.now() });
  let steps = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(steps).toBeGreaterThan(300 + names.length / 2_000);
  expect(step.value['client-ca-file']).toBe(secondPem + firstPem);
  const allowed = JSON.stringify([...new Set([...names, 'front'])]);
  expect(step.value['requestheader-allowed-names']).toBe(allowed);
});

test('TRUST-5: an authority in ambiguous PEM is omitted', () => {
  const second = firstPem.indexOf('\n') + 1;
  const withJunk = `${firstPem.slice(0, second)}!${firstPem.slice(second)}`;
  const endsAsOther = firstPem.replace('END CERTIFICATE', 'END X509 CRL');
  const headed = `${firstPem.slice(0, second)}Proc-Type: 4\n\n${firstPem.slice(second)}`;
  for (const found of [withJunk, endsAsOther, headed]) {
    expect(merged({}, { 'client-ca-file': secondPem + found })).toEqual({
      'client-ca-file': secondPem,
    });
  }
});
