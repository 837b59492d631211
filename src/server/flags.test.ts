import { describe, expect, test } from 'vitest';
import { describeFlags, type FlagTable, parseDuration, parseFlags } from './flags.ts';
import { serverFlags } from './flags-table.ts';
import { defaultOptions, readOptions } from './options.ts';

const table = {
  name: { group: 'g', type: 'string', default: 'x', help: 'h' },
  on: { group: 'g', type: 'bool', default: 'false', help: 'h' },
  list: { group: 'g', type: 'list', default: 'a', help: 'h' },
  map: { group: 'g', type: 'map', default: '', help: 'h' },
  level: { group: 'g', type: 'int', default: '0', help: 'h', shorthand: 'v' },
} as const satisfies FlagTable;

describe('parseFlags', () => {
  test.each([
    [[], { name: 'x', on: false, list: ['a'], level: 0 }],
    [['--name', 'y', '--on'], { name: 'y', on: true }],
    [['--name=', '--on=false'], { name: '', on: false }],
    [['--list=b,c', '--list', 'd'], { list: ['b', 'c', 'd'] }],
    [['-v', '4'], { level: 4 }],
    [['-v=5'], { level: 5 }],
    [['-v6'], { level: 6 }],
  ])('%j', (args, expected) => {
    expect(parseFlags(table, args).values).toMatchObject(expected);
  });

  test('maps', () => {
    const { values } = parseFlags(table, ['--map=a=1,b', '--map', 'c=false']);
    expect(Object.fromEntries(values.map)).toEqual({ a: '1', b: 'true', c: 'false' });
  });

  test.each([
    [['--foo'], 'unknown flag: --foo'],
    [['--constructor=1'], 'unknown flag: --constructor'],
    [['serve'], 'unknown argument: "serve"'],
    [['--name'], 'flag needs an argument: --name'],
    [['-x'], "unknown shorthand flag: 'x' in -x"],
    [['--on=maybe'], 'invalid argument "maybe" for "--on" flag: "maybe" is not a boolean'],
    [['--level=1.5'], 'invalid argument "1.5" for "--level" flag: "1.5" is not an integer'],
  ])('%j is refused', (args, message) => {
    expect(() => parseFlags(table, args)).toThrow(message);
  });
});

test.each([
  ['1h', 3_600_000],
  ['5m0s', 300_000],
  ['300ms', 300],
  ['1.5s', 1500],
  ['-2s', -2000],
  ['0', 0],
])('the duration %s is %d ms', (text, expected) => {
  expect(parseDuration(text)).toBe(expected);
});

test.each(['', '5', 's', '1d', '1h 2m', '1h2'])('%j is no duration', (text) => {
  expect(() => parseDuration(text)).toThrow('is not a duration');
});

describe('the options of the server', () => {
  test('have the defaults of upstream', () => {
    expect(defaultOptions()).toMatchObject({
      dialect: 'svc',
      securePort: 6443,
      historyRetentionMs: 300_000,
      eventTtlMs: 3_600_000,
      requestsInFlightMax: 400,
      authorizationModes: ['AlwaysAllow'],
      anonymousAuth: true,
      certDir: 'wheelhouse-data/certificates',
      servingHosts: ['localhost', '127.0.0.1', '::1'],
      requestBodyBytesMax: 3 * 1024 * 1024,
    });
  });

  test.each([
    ['--tls-cert-file=a', 'must be given together'],
    ['--authorization-mode=RBAC,RBAC', 'more than once'],
    ['--authorization-mode=Foo', '"Foo" is not one of'],
    ['--authorization-mode=', 'at least one authorization-mode must be passed'],
    ['--dialect=x', '--dialect "x" is not one of svc, kubernetes'],
    ['--storage-backend=x', 'is not one of embedded, memory'],
    ['--secure-port=70000', 'must be between 0 and 65535'],
    ['--max-requests-inflight=-1', 'can not be negative value'],
    ['--event-ttl=0', 'must be greater than 0'],
    ['--insecure-port=6443', 'must differ'],
    ['--bind-address=nowhere', 'is not an IP address'],
    ['--feature-gates=A=x', 'invalid value of A=x in --feature-gates'],
  ])('%s is refused', (flag, message) => {
    expect(() => readOptions([flag])).toThrow(message);
  });

  test('help and version win over nothing else being wrong', () => {
    expect(readOptions(['--help'])).toEqual({ kind: 'help' });
    expect(readOptions(['--version'])).toEqual({ kind: 'version' });
  });

  test('the description shows every flag with default and stage', () => {
    const text = describeFlags(serverFlags);
    for (const name of Object.keys(serverFlags)) expect(text).toContain(`--${name}`);
    expect(text).toContain('(default 6443)');
    expect(text).toContain('OWN - ');
  });
});
