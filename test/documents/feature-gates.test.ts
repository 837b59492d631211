import { readdirSync, readFileSync } from 'node:fs';
import { type GateEntry, gateTable } from '@wheelhouse/kinds';
import {
  defaultGates,
  describeFlags,
  describeGates,
  idleReason,
  parseFlags,
  readFeatureGates,
  readOptions,
  serverFlags,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';

const isOn = (pairs: string, name: Parameters<typeof defaultGates.enabled>[0]): boolean =>
  readFeatureGates(pairs.split(',')).gates.enabled(name);

function optionsOf(...flags: string[]) {
  const outcome = readOptions(flags);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options;
}

describe('VER-5: feature gates', () => {
  test('VER-5: defaults follow the stage', () => {
    expect(defaultGates.enabled('CBORServingAndStorage')).toBe(false);
    expect(defaultGates.enabled('APIResponseCompression')).toBe(true);
    expect(defaultGates.enabled('WatchBookmark')).toBe(true);
    expect(defaultGates.enabled('KMSv1')).toBe(false);
  });

  test.each([
    ['NoSuch=true', 'unrecognized feature gate: NoSuch'],
    // Removed: its feature became stable, and the gate was removed.
    ['ServerSideApply=true', 'unrecognized feature gate: ServerSideApply'],
    ['constructor=true', 'unrecognized feature gate: constructor'],
    ['WatchBookmark', 'missing bool value for WatchBookmark'],
    [
      'APIResponseCompression=maybe',
      'invalid value of APIResponseCompression=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    [
      'APIListChunking=false',
      'cannot set feature gate APIListChunking to false, feature is locked to true',
    ],
    ['kubelet:AllAlpha=true', 'component not registered: kubelet'],
  ])('VER-5: %s is refused', (pair, message) => {
    expect(() => readOptions([`--feature-gates=${pair}`])).toThrow(message);
  });

  test('VER-5: AllAlpha and AllBeta apply to gates that are not set', () => {
    expect(isOn('AllAlpha=true', 'CBORServingAndStorage')).toBe(true);
    expect(isOn('AllAlpha=true,CBORServingAndStorage=false', 'CBORServingAndStorage')).toBe(false);
    expect(isOn('CBORServingAndStorage=false,AllAlpha=true', 'CBORServingAndStorage')).toBe(false);
    expect(isOn('AllBeta=false', 'APIResponseCompression')).toBe(false);
    expect(isOn('AllBeta=false', 'APIListChunking')).toBe(true);
    expect(isOn('AllBeta=true', 'WatchFromStorageWithoutResourceVersion')).toBe(true);
    expect(isOn('AllBeta=true', 'AllAlpha')).toBe(false);
    expect(isOn('AllAlpha=true', 'AllowUnsafeMalformedObjectDeletion')).toBe(true);
  });

  test('VER-5: the later of two settings wins, and the component may be named', () => {
    expect(isOn('APIResponseCompression=true,APIResponseCompression=false', 'WatchList')).toBe(
      true,
    );
    expect(isOn('WatchList=false,WatchList=true', 'WatchList')).toBe(true);
    expect(isOn('kube:WatchList=false', 'WatchList')).toBe(false);
    expect(isOn('APIResponseCompression=true,\nWatchList=false\n', 'WatchList')).toBe(false);
  });

  test('VER-5: gates of other components are accepted, and every gate is listed in order', () => {
    expect(() => readFeatureGates(['SidecarContainers=true', 'NodeSwap=false'])).not.toThrow();
    const names = defaultGates.all().map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    for (const entries of Object.values<readonly GateEntry[]>(gateTable)) {
      const releases = entries.map(({ since }) => since);
      expect(releases).toEqual([...new Set(releases)].sort((a, b) => a - b));
    }
  });

  test('VER-5: deprecated and locked gates warn, others do not', () => {
    expect(
      readFeatureGates(['KMSv1=true', 'WatchBookmark=true', 'WatchList=true']).warnings,
    ).toEqual([
      'Setting deprecated feature gate KMSv1=true. It will be removed in a future release.',
      'Setting GA feature gate WatchBookmark=true. It will be removed in a future release.',
    ]);
    const { warnings } = optionsOf('--feature-gates=KMSv1=false', '--runtime-config=api/legacy');
    expect(warnings).toEqual([
      'Setting deprecated feature gate KMSv1=false. It will be removed in a future release.',
      'runtime-config api/legacy is deprecated, without effect',
    ]);
  });

  test('VER-5: a gate changes what the server does', async () => {
    const { config } = optionsOf('--feature-gates=CBORServingAndStorage=true');
    expect(config).toMatchObject({ cborServed: true, compressResponses: true });
    const { cborServed = false, featureGates = defaultGates } = config;
    const server = await withServer({ cborServed, featureGates });
    const path = '/api/v1/namespaces/default';
    const answer = await server.get(path, { accept: 'application/cbor' });
    expect(answer.headers['content-type']).toBe('application/cbor');
  });
});

describe('VER-2: feature gates of an emulated release', () => {
  const read = (pairs: string, minor: number) =>
    readFeatureGates(pairs === '' ? [] : pairs.split(','), { emulatedMinor: minor });
  const stateOf = (name: string, minor: number, pairs = '') => {
    const gate = read(pairs, minor)
      .gates.all()
      .find((candidate) => candidate.name === name);
    return gate === undefined ? undefined : `${gate.stage} ${gate.on ? 'on' : 'off'}`;
  };

  test.each([
    ['APIListChunking', { 15: 'BETA on', 28: 'BETA on', 29: 'GA on', 32: 'GA on' }],
    ['APIServerTracing', { 21: undefined, 22: 'ALPHA off', 26: 'ALPHA off', 27: 'BETA on' }],
    ['RemainingItemCount', { 15: 'ALPHA off', 16: 'BETA on', 29: 'GA on' }],
    ['KMSv1', { 15: 'GA on', 28: 'DEPRECATED on', 29: 'DEPRECATED off', 32: 'DEPRECATED off' }],
    ['TopologyAwareHints', { 20: undefined, 21: 'ALPHA off', 23: 'BETA off', 24: 'BETA on' }],
    ['AuthorizeWithSelectors', { 30: undefined, 31: 'ALPHA off', 32: 'BETA on' }],
    ['StrictCostEnforcementForVAP', { 29: undefined, 31: 'BETA off', 32: 'GA on' }],
    ['AllAlpha', { 15: 'ALPHA off', 32: 'ALPHA off' }],
  ])('VER-2: %s has its former default', (name, states) => {
    for (const [minor, state] of Object.entries(states)) {
      expect([minor, stateOf(name, Number(minor))]).toEqual([minor, state]);
    }
  });

  test('VER-2: a gate of a later release is refused', () => {
    optionsOf('--emulated-version=1.30', '--feature-gates=WatchList=true');
    for (const value of ['true', 'false']) {
      expect(() =>
        optionsOf('--emulated-version=1.30', `--feature-gates=AuthorizeWithSelectors=${value}`),
      ).toThrow(
        `cannot set feature gate AuthorizeWithSelectors to ${value}, feature is PreAlpha at emulated version 1.30`,
      );
    }
    expect(() => optionsOf('--emulated-version=1.30', '--feature-gates=NoSuch=true')).toThrow(
      'unrecognized feature gate: NoSuch',
    );
  });

  test('VER-2: a gate that is locked now can be set where it was not', () => {
    expect(stateOf('APIListChunking', 28, 'APIListChunking=false')).toBe('BETA off');
    expect(() => read('APIListChunking=false', 29)).toThrow('feature is locked to true');
    expect(stateOf('CustomResourceFieldSelectors', 31, 'CustomResourceFieldSelectors=false')).toBe(
      'BETA off',
    );
    expect(() => read('CustomResourceFieldSelectors=false', 32)).toThrow(
      'feature is locked to true',
    );
  });

  test('VER-2: AllAlpha and AllBeta use the stages of that release', () => {
    expect(stateOf('WatchList', 31, 'AllAlpha=true')).toBe('ALPHA on');
    expect(stateOf('WatchList', 32, 'AllAlpha=true')).toBe('BETA on');
    expect(stateOf('WatchList', 26, 'AllAlpha=true')).toBe(undefined);
    expect(stateOf('APIListChunking', 28, 'AllBeta=false')).toBe('BETA off');
    expect(stateOf('APIListChunking', 29, 'AllBeta=false')).toBe('GA on');
  });

  test('VER-2: warnings name that release', () => {
    expect(read('KMSv1=true', 27).warnings).toEqual([
      'Setting GA feature gate KMSv1=true. It will be removed in a future release.',
    ]);
    expect(read('APIListChunking=true', 28).warnings).toEqual([]);
    expect(read('APIListChunking=true', 29).warnings).toHaveLength(1);
  });

  test('VER-2: files are refused where their gate was off', () => {
    const refused = (...flags: string[]) => {
      try {
        optionsOf(...flags);
        return '';
      } catch (error) {
        return String(error);
      }
    };
    const authorization = '--authorization-config=authorizers.yaml';
    const reason = 'cannot be used without enabling StructuredAuthorizationConfiguration';
    expect(refused(authorization, '--emulated-version=1.29')).toContain(reason);
    expect(refused(authorization, '--emulated-version=1.30')).toBe('');
    const off = '--feature-gates=StructuredAuthorizationConfiguration=false';
    expect(refused(authorization, '--emulated-version=1.31', off)).toContain(reason);
    expect(refused(authorization, off)).toContain('feature is locked to true');
  });

  test('VER-2: metrics and behavior follow the emulated release', async () => {
    const { config } = optionsOf('--emulated-version=1.15', '--feature-gates=WatchBookmark=true');
    expect(config).toMatchObject({ compressResponses: false, cborServed: false });
    const { emulatedMinor = 0, featureGates = defaultGates } = config;
    const server = await withServer({ emulatedMinor, featureGates });
    const { text } = await server.get('/metrics');
    const lines = text.split('\n').filter((line) => line.startsWith('kubernetes_feature_enabled{'));
    const of = (name: string) => lines.filter((line) => line.includes(`name="${name}"`));
    const sample = (name: string, stage: string, on: number) =>
      `kubernetes_feature_enabled{name="${name}",stage="${stage}"} ${on}`;
    expect(of('WatchBookmark')).toEqual([sample('WatchBookmark', 'ALPHA', 1)]);
    expect(of('APIResponseCompression')).toEqual([sample('APIResponseCompression', 'ALPHA', 0)]);
    expect(of('KMSv1')).toEqual([sample('KMSv1', '', 1)]);
    expect(of('WatchList')).toEqual([]);
  });
});

describe('VER-7: help and deprecated flags', () => {
  test('VER-7: help shows stage and default of every settable gate', () => {
    const help = describeFlags(serverFlags);
    for (const line of describeGates()) expect(help).toContain(line);
    expect(help).toContain('APIResponseCompression=true|false (BETA - default=true)');
    expect(help).toContain('CBORServingAndStorage=true|false (ALPHA - default=false)');
    expect(help).toContain('WatchList=true|false (BETA - default=true)');
    expect(help).toContain(
      'NodeSwap=true|false (BETA - default=true; no effect: of other components)',
    );
    expect(help).toContain('CoordinatedLeaderElection=true|false (ALPHA - default=false)');
    expect(help).toContain('KMSv1=true|false (DEPRECATED - default=false');
    expect(help).not.toContain('WatchBookmark=');
    expect(help).toContain('api/beta=true|false');
  });

  test('VER-7: every gate takes effect, or help states that it does not', () => {
    const source = readdirSync('packages', { recursive: true, encoding: 'utf8' })
      .filter((path) => /\/src\/.*\.ts$/.test(path) && !path.endsWith('.test.ts'))
      .filter((path) => !/(feature-gate-table|feature-gates|idle-gates)\.ts$/.test(path))
      .map((path) => readFileSync(`packages/${path}`, 'utf8'))
      .join('\n');
    const names = Object.keys(gateTable).filter((name) => !/^All(Alpha|Beta)$/.test(name));
    const acting = names.filter((name) => source.includes(`'${name}'`));
    expect(names.filter((name) => idleReason(name) === undefined)).toEqual(acting);
  });

  test('VER-7: a gate without effect warns in every release where it can be set', () => {
    const warningsOf = (pair: string, emulatedMinor = 32) =>
      readFeatureGates([pair], { emulatedMinor }).warnings;
    expect(warningsOf('ResilientWatchCacheInitialization=false')).toEqual([
      'Setting feature gate ResilientWatchCacheInitialization=false has no effect: in this server it is ' +
        'always on.',
    ]);
    expect(warningsOf('APIListChunking=false', 28)).toHaveLength(1);
    expect(warningsOf('ResilientWatchCacheInitialization=true')).toEqual([]);
    expect(warningsOf('NodeSwap=false')).toEqual([]);
  });

  test('VER-7: a deprecated flag warns and says so in help', () => {
    const old = {
      group: 'g',
      type: 'bool' as const,
      default: 'false',
      help: 'h',
      deprecated: 'use --new',
    };
    const table = { old } as const satisfies Parameters<typeof parseFlags>[0];
    expect(parseFlags(table, ['--old']).warnings).toEqual([
      'Flag --old has been deprecated, use --new',
    ]);
    expect(parseFlags(table, []).warnings).toEqual([]);
    expect(describeFlags(table)).toContain('DEPRECATED - h (use --new)');
  });
});
