import { describe, expect, test } from 'vitest';
import { defaultGates, describeGates, readFeatureGates } from '../src/server/feature-gates.ts';
import { describeFlags, parseFlags } from '../src/server/flags.ts';
import { serverFlags } from '../src/server/flags-table.ts';
import { readOptions } from '../src/server/options.ts';
import { startTestServer } from './harness.ts';

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
    // Removed: its feature became stable and the gate has gone.
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

  test('VER-5: AllAlpha and AllBeta speak for gates that are not set themselves', () => {
    expect(isOn('AllAlpha=true', 'CBORServingAndStorage')).toBe(true);
    expect(isOn('AllAlpha=true,CBORServingAndStorage=false', 'CBORServingAndStorage')).toBe(false);
    expect(isOn('CBORServingAndStorage=false,AllAlpha=true', 'CBORServingAndStorage')).toBe(false);
    expect(isOn('AllBeta=false', 'APIResponseCompression')).toBe(false);
    expect(isOn('AllBeta=false', 'APIListChunking')).toBe(true);
    expect(isOn('AllBeta=true', 'WatchFromStorageWithoutResourceVersion')).toBe(true);
    expect(isOn('AllBeta=true', 'AllAlpha')).toBe(false);
    expect(isOn('AllAlpha=true', 'AllowUnsafeMalformedObjectDeletion')).toBe(true);
  });

  test('VER-5: the later of two settings wins, and the own component may be named', () => {
    expect(isOn('APIResponseCompression=true,APIResponseCompression=false', 'WatchList')).toBe(
      true,
    );
    expect(isOn('WatchList=false,WatchList=true', 'WatchList')).toBe(true);
    expect(isOn('kube:WatchList=false', 'WatchList')).toBe(false);
  });

  test('VER-5: gates on their way out are warned of, others are not', () => {
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
    const server = await startTestServer({ cborServed, featureGates });
    const path = '/api/v1/namespaces/default';
    const answer = await server.get(path, { accept: 'application/cbor' });
    expect(answer.headers['content-type']).toBe('application/cbor');
    await server.stop();
  });
});

describe('VER-7: help and deprecated flags', () => {
  test('VER-7: the help shows stage and default of every gate that may be set', () => {
    const help = describeFlags(serverFlags);
    for (const line of describeGates()) expect(help).toContain(line);
    expect(help).toContain('APIResponseCompression=true|false (BETA - default=true)');
    expect(help).toContain('CBORServingAndStorage=true|false (ALPHA - default=false)');
    expect(help).toContain('WatchList=true|false (BETA - default=true; no effect in this server)');
    expect(help).toContain('KMSv1=true|false (DEPRECATED - default=false');
    expect(help).not.toContain('WatchBookmark=');
    expect(help).toContain('api/beta=true|false');
  });

  test('VER-7: a deprecated flag warns when it is given, and says so in the help', () => {
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
