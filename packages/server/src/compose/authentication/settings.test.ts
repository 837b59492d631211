import { describe, expect, test } from 'vitest';
import { readOptions } from '../command-line.ts';
import {
  type ControllerName,
  controllerSelection,
  unknownController,
} from '../controllers/settings.ts';

function configOf(...args: string[]) {
  const outcome = readOptions(args);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options.config;
}

describe('flags of identity', () => {
  test('AUTHN-6: service account flags', () => {
    expect(configOf().serviceAccounts).toEqual({
      extension: 'on',
      keyFiles: [],
      lookup: 'required',
    });
    const key = import.meta.filename;
    const config = configOf(
      '--service-account-issuer=https://a',
      '--service-account-issuer=https://b',
      '--api-audiences=x,y',
      '--service-account-jwks-uri=https://keys/jwks',
      '--service-account-lookup=false',
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
    );
    expect(config.serviceAccounts).toEqual({
      extension: 'on',
      jwksUri: 'https://keys/jwks',
      issuer: 'https://a',
      acceptedIssuers: ['https://a', 'https://b'],
      audiences: ['x', 'y'],
      keyFiles: [key],
      signingKeyFile: key,
      lookup: 'off',
    });
    expect(() => configOf('--service-account-jwks-uri=http://keys')).toThrow(
      'service-account-jwks-uri requires https scheme, parsed as: http://keys',
    );
  });

  test.each([
    ['', 'service-account-issuer should not be an empty string'],
    ['https://a', 'service-account-issuer "https://a" is already specified'],
    [
      ':a',
      `service-account-issuer ":a" contained a ':' but was not a valid URL: parse ":a": missing protocol scheme`,
    ],
  ])('AUTHN-6: the issuer %j is refused', (issuer, message) => {
    const flags = ['--service-account-issuer=https://a', `--service-account-issuer=${issuer}`];
    expect(() => configOf(...flags)).toThrow(message);
  });

  test('AUTHN-6: an issuer may contain commas', () => {
    const { serviceAccounts } = configOf('--service-account-issuer=a,b');
    expect(serviceAccounts?.acceptedIssuers).toEqual(['a,b']);
  });

  test('AUTHZ-9: AuthorizeNodeWithSelectors requires AuthorizeWithSelectors', () => {
    const off = 'AuthorizeWithSelectors=false';
    expect(() => configOf(`--feature-gates=${off}`)).toThrow(
      'AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled',
    );
    const both = `--feature-gates=${off},AuthorizeNodeWithSelectors=false`;
    expect(configOf(both).featureGates?.enabled('AuthorizeWithSelectors')).toBe(false);
  });

  test('AUTHN-9: front-proxy flags', () => {
    expect(configOf().authentication.requestHeader).toBeUndefined();
    const { requestHeader } = configOf(
      '--requestheader-client-ca-file=ca.crt',
      '--requestheader-allowed-names=front',
      '--requestheader-username-headers=X-Remote-User,X-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    ).authentication;
    expect(requestHeader).toEqual({
      clientCaFile: 'ca.crt',
      allowedNames: ['front'],
      usernameHeaders: ['X-Remote-User', 'X-User'],
      groupHeaders: ['X-Remote-Group'],
      extraHeaderPrefixes: ['X-Remote-Extra-'],
    });
  });

  test('AUTHN-4: bootstrap tokens are off by default; an unknown controller is an error', () => {
    expect(configOf().authentication.bootstrapTokens).toBe('off');
    expect(configOf('--enable-bootstrap-token-auth').authentication.bootstrapTokens).toBe('on');
    expect(configOf().controllers).toEqual(['*']);
    expect(() => configOf('--controllers=*,-nothing')).toThrow(
      '"nothing" is not in the list of known controllers',
    );
  });
});

const upstreamNames: readonly [ControllerName, string][] = [
  ['garbage-collector-controller', 'garbagecollector'],
  ['namespace-controller', 'namespace'],
  ['clusterrole-aggregation-controller', 'clusterrole-aggregation'],
  ['serviceaccount-controller', 'serviceaccount'],
  ['serviceaccount-token-controller', 'serviceaccount-token'],
  ['root-ca-certificate-publisher-controller', 'root-ca-cert-publisher'],
];

test.each(upstreamNames)('AUTHN-4: --controllers knows %s and %s', (name, alias) => {
  const runs = (...items: string[]) => controllerSelection(items)(name);
  expect(runs('*')).toBe(true);
  expect(runs()).toBe(false);
  for (const word of [name, alias]) {
    expect(runs(word)).toBe(true);
    expect(runs('*', `-${word}`)).toBe(false);
    expect(runs(`-${word}`)).toBe(false);
    expect(unknownController([word, `-${word}`])).toBeUndefined();
  }
});

test.each([['nope'], ['-nope'], ['--namespace'], ['']])('AUTHN-4: %j is unknown', (item) => {
  expect(unknownController(['*', item])).toBe(item);
});

const [accounts, cleaner]: ControllerName[] = [
  'serviceaccount-controller',
  'token-cleaner-controller',
];

test.each([
  [['*'], true, false],
  [['*', 'tokencleaner'], true, true],
  [['*', 'token-cleaner-controller'], true, true],
  [['*', '-serviceaccount'], false, false],
  [['-serviceaccount', '*'], false, false],
  [['tokencleaner'], false, true],
  [['tokencleaner', '-tokencleaner'], false, true],
  [[], false, false],
])('AUTHN-4: --controllers %j', (items, runsAccounts, runsCleaner) => {
  const runs = controllerSelection(items);
  expect(accounts && runs(accounts)).toBe(runsAccounts);
  expect(cleaner && runs(cleaner)).toBe(runsCleaner);
});
