import { describe, expect, test } from 'vitest';
import { readOptions, type ServerOptions, serverFlags } from '../compose/command-line.ts';
import {
  describeFlags,
  type FlagDefinition,
  type FlagTable,
  joinFlagTables,
  parseFlags,
} from './flags.ts';

const table = {
  name: { group: 'g', type: 'string', default: 'x', help: 'h' },
  on: { group: 'g', type: 'bool', default: 'false', help: 'h' },
  list: { group: 'g', type: 'list', default: 'a', help: 'h' },
  map: { group: 'g', type: 'map', default: '', help: 'h' },
  labels: { group: 'g', type: 'pairs', default: '', help: 'h' },
  wait: { group: 'g', type: 'duration', default: '5m', help: 'h' },
  rate: { group: 'g', type: 'float', default: '.5', help: 'h' },
  level: { group: 'g', type: 'int', default: '0', help: 'h', shorthand: 'v' },
  log: { group: 'g', type: 'level', default: '0', help: 'h' },
  address: { group: 'g', type: 'ip', default: '', help: 'h' },
} as const satisfies FlagTable;

describe('joinFlagTables', () => {
  const flag = (group: string, after?: string): FlagDefinition => ({
    group,
    type: 'string',
    default: '',
    help: '',
    ...(after === undefined ? {} : { after }),
  });

  test('orders flags by group, after those that they name', () => {
    const secondGroup = { a: flag('second'), d: flag('second', 'y'), e: flag('second') };
    const firstGroup = { x: flag('first'), y: flag('second') };
    const joined = joinFlagTables([secondGroup, firstGroup], ['first', 'second']);
    expect(Object.keys(joined)).toEqual(['x', 'a', 'y', 'd', 'e']);
  });

  test('refuses a flag after a missing one', () => {
    expect(() => joinFlagTables([{ a: flag('g', 'b') }], ['g'])).toThrow('there is no flag --b');
  });
});

describe('parseFlags', () => {
  test.each([
    [[], { name: 'x', on: false, list: ['a'], level: 0 }],
    [['--name', 'y', '--on'], { name: 'y', on: true }],
    [['--name=', '--on=false'], { name: '', on: false }],
    [['--list=b,c', '--list', 'd'], { list: ['b', 'c', 'd'] }],
    [['-v', '4'], { level: 4 }],
    [['-v=5'], { level: 5 }],
    [['-v6'], { level: 6 }],
    [['--level=0x10'], { level: 16 }],
    [['--level=-0o17'], { level: -15 }],
    [['--level=010'], { level: 8 }],
    [['--level=1_000'], { level: 1000 }],
    [['--on=T'], { on: true }],
    [['--list="b,c",d', '--list=', '--list="e""f"\ng'], { list: ['b,c', 'd', 'e"f'] }],
    [['--wait=1.5s'], { wait: 1500 }],
    [['--wait=-2s', '--rate=1e2'], { wait: -2000, rate: 100 }],
    ...Object.entries({
      '0x1.8p3': 12,
      '-0x_1.8P-1': -0.75,
      '1_000.5': 1000.5,
      '+Inf': Number.POSITIVE_INFINITY,
      nan: Number.NaN,
    }).map(([text, rate]): [string[], object] => [[`--rate=${text}`], { rate }]),
    [['--log=04', '--address= ::1 '], { log: 4, address: '::1' }],
    [['--', ''], { name: 'x', address: '' }],
  ])('%j', (args, expected) => {
    expect(parseFlags(table, args).values).toMatchObject(expected);
  });

  test('maps', () => {
    const { values } = parseFlags(table, ['--map=a=1,,b', '--map', 'c=false']);
    expect(Object.fromEntries(values.map)).toEqual({ a: '1', b: 'true', c: 'false' });
    const labels = parseFlags(table, ['--labels=a,b=1,2', '--labels="c=3,4",d=5']).values.labels;
    expect(Object.fromEntries(labels)).toEqual({ 'a,b': '1,2', c: '3,4', d: '5' });
  });

  test('help and the version can be declined', () => {
    const declined = parseFlags(table, ['--help=false', '--version=false']);
    expect(declined).toMatchObject({ help: false, version: undefined });
    expect(parseFlags(table, ['-h', '--version=raw'])).toMatchObject({
      help: true,
      version: 'raw',
    });
  });

  test.each([
    [['--foo'], 'unknown flag: --foo'],
    [['--constructor=1'], 'unknown flag: --constructor'],
    [['serve'], 'unknown argument: "serve"'],
    [['--name'], 'flag needs an argument: --name'],
    [['-x'], "unknown shorthand flag: 'x' in -x"],
    [['---name'], 'bad flag syntax: ---name'],
    [['--=x'], 'bad flag syntax: --=x'],
    [['--on=maybe'], 'for "--on" flag: strconv.ParseBool: parsing "maybe": invalid syntax'],
    [['-v=1.5'], 'for "-v, --level" flag: strconv.ParseInt: parsing "1.5": invalid syntax'],
    [['-v='], 'invalid argument "=" for "-v, --level" flag: strconv.ParseInt: parsing "="'],
    [['--level=08'], 'strconv.ParseInt: parsing "08": invalid syntax'],
    [['--level=9223372036854775808'], 'value out of range'],
    [['--rate=1e400'], 'strconv.ParseFloat: parsing "1e400": value out of range'],
    ...['0x10', '0x.p1', '1__0', '_1', '1_', '1_e5', '1._5', '+nan', ''].map(
      (text): [string[], string] => [[`--rate=${text}`], `parsing "${text}": invalid syntax`],
    ),
    [['--rate=0x1p1024'], 'strconv.ParseFloat: parsing "0x1p1024": value out of range'],
    [['--log=0x2'], 'for "--log" flag: strconv.ParseUint: parsing "0x2": invalid syntax'],
    [['--log=-1'], 'for "--log" flag: strconv.ParseUint: parsing "-1": invalid syntax'],
    [['--log=2147483648'], 'strconv.ParseUint: parsing "2147483648": value out of range'],
    [['--address=x '], 'invalid argument "x " for "--address" flag: failed to parse IP: "x "'],
    [['--address=010.0.0.1'], 'failed to parse IP: "010.0.0.1"'],
    [['--address=::ffff:010.0.0.1'], 'failed to parse IP: "::ffff:010.0.0.1"'],
    [['--address='], 'invalid argument "" for "--address" flag: failed to parse IP: ""'],
    [['--wait=5'], 'for "--wait" flag: time: missing unit in duration "5"'],
    [['--help=x'], 'invalid argument "x" for "-h, --help" flag: strconv.ParseBool'],
    [['--list=a"b'], 'parse error on line 1, column 2: bare " in non-quoted-field'],
    [['--list="a" ,b'], 'parse error on line 1, column 3: extraneous or missing " in quoted-field'],
    [['--list="//a'], 'parse error on line 1, column 5: extraneous or missing " in quoted-field'],
    [['--list=x,"é""'], 'parse error on line 1, column 8: extraneous or missing " in quoted-field'],
    [['--labels=a,b=1,c=2'], 'for "--labels" flag: a must be formatted as key=value'],
    [['--level=x', '--foo'], 'invalid argument "x"'],
  ])('%j is refused', (args, message) => {
    expect(() => parseFlags(table, args)).toThrow(message);
  });
});

function configOf(args: readonly string[]): ServerOptions['config'] {
  const outcome = readOptions(args);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options.config;
}

describe('the options of the server', () => {
  test('refuse anonymous requests with AlwaysAllow', () => {
    const anonymous = (...flags: string[]) => configOf(flags).authentication.anonymous;
    expect(anonymous('--anonymous-auth=true')).toBe(false);
    expect(anonymous('--authorization-mode=RBAC,AlwaysAllow')).toBe(false);
    expect(anonymous('--authorization-mode=RBAC')).toBe(true);
    expect(anonymous('--authorization-mode=RBAC', '--anonymous-auth=false')).toBe(false);
  });

  test('have kube-apiserver’s defaults', () => {
    expect(configOf([])).toMatchObject({
      dialect: 'svc',
      listen: { host: '0.0.0.0', port: 6443, tls: { certDir: 'wheelhouse-data/certificates' } },
      store: { type: 'embedded', directory: 'wheelhouse-data/store' },
      compactionIntervalMs: 300_000,
      eventTtlMs: 3_600_000,
      limits: { readsInFlightMax: 400, writesInFlightMax: 200, bodyBytesMax: 3 * 1024 * 1024 },
      authorizationModes: ['AlwaysAllow'],
      authentication: { anonymous: false },
      compressResponses: true,
    });
  });

  test('AUTHZ-2: an empty --authorization-mode is the default, without anonymous requests', () => {
    expect(configOf(['--authorization-mode='])).toMatchObject({
      authorizationModes: ['AlwaysAllow'],
      authentication: { anonymous: false },
    });
  });

  test.each([
    ['flowcontrol.apiserver.svc.io/v1=false', 'flowcontrol.apiserver.svc.io/v1'],
    ['flowcontrol.apiserver.svc.io/v1=false,api/ga=true', 'flowcontrol.apiserver.svc.io/v1'],
    ['api/ga=false,api/all=true', 'api/ga'],
    ['api/all=false,v1=true', 'api/all'],
  ])('VER-1: priority and fairness needs its kinds: --runtime-config=%s', (pairs, decisive) => {
    const flag = `--runtime-config=${pairs}`;
    expect(() => readOptions([flag])).toThrow(
      `--runtime-config=${decisive}=false conflicts with --enable-priority-and-fairness=true`,
    );
    expect(readOptions([flag, '--enable-priority-and-fairness=false']).kind).toBe('options');
  });

  test('VER-1: priority and fairness accepts its version enabled among disabled ones', () => {
    const flag = '--runtime-config=api/all=false,flowcontrol.apiserver.svc.io/v1=true';
    expect(readOptions([flag]).kind).toBe('options');
  });

  test('empty ranges of Services are the default ones', () => {
    const flags = ['--service-cluster-ip-range=', '--service-node-port-range='];
    expect(configOf(flags).serviceRanges).toEqual(configOf([]).serviceRanges);
  });

  test('plain HTTP is on loopback, and only when requested', () => {
    expect(configOf(['--plain-http-port=0']).listen).toEqual({
      host: '127.0.0.1',
      port: 0,
      tls: 'plaintext',
    });
  });

  test('PLANE-1: with only etcd and a certificate directory, data are in that directory', () => {
    const dataDirOf = (...flags: string[]) => {
      const outcome = readOptions(flags);
      return outcome.kind === 'options' ? outcome.options.dataDir : undefined;
    };
    const etcd = '--etcd-servers=http://127.0.0.1:1';
    expect(dataDirOf(etcd, '--cert-dir=/c')).toBe('/c/wheelhouse-data');
    expect(dataDirOf(etcd, '--cert-dir=/c', '--data-dir=d')).toBe('d');
    expect(dataDirOf(etcd)).toBe('./wheelhouse-data');
    expect(dataDirOf('--cert-dir=/c')).toBe('./wheelhouse-data');
  });

  test('a feature gate', () => {
    const { compressResponses } = configOf(['--feature-gates=APIResponseCompression=false']);
    expect(compressResponses).toBe(false);
  });

  test.each([
    ['--tls-cert-file=a', 'must be given together'],
    ['--authorization-mode=RBAC,RBAC', 'more than once'],
    ['--authorization-mode=Foo', 'authorization-mode "Foo" is not a valid mode'],
    ['--dialect=x', '--dialect "x" is not one of svc, kubernetes'],
    ['--storage-backend=x', 'is not one of embedded, memory'],
    ['--secure-port=70000', 'must be between 0 and 65535'],
    ['--tls-private-key-file=a', '--tls-cert-file and --tls-private-key-file must be given'],
    ['--proxy-client-key-file=a', '--proxy-client-cert-file and --proxy-client-key-file must be'],
    ['--kubelet-client-certificate=a', '--kubelet-client-key must be given together'],
    ['--max-requests-inflight=-1', 'can not be negative value'],
    ['--plain-http-port=-2', 'must be between -1 and 65535, inclusive'],
    ['--delete-collection-workers=0', '--delete-collection-workers must be greater than 0'],
    ['--request-timeout=0', 'must be greater than 0'],
    ['--log-flush-frequency=0', '--log-flush-frequency must be greater than 0'],
    ['--requestheader-allowed-names=a,,b', 'empty value in "requestheader-allowed-names"'],
    [
      '--feature-gates=RemoteRequestHeaderUID=true --requestheader-uid-headers=X-Uid',
      '--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header',
    ],
    ['--storage-backend=memory --quota-backend-bytes=1', '--quota-backend-bytes has no effect'],
    ['--feature-gates=kube:WatchList=true,SizeMemoryBackedVolumes=true', 'do not mix use'],
    ['--feature-gates=kube:WatchList=true,wardle:A=true', 'component not registered: wardle'],
    ['--feature-gates="WatchList=true"', 'unrecognized feature gate: "WatchList'],
    ['--bind-address=nowhere', 'for "--bind-address" flag: failed to parse IP: "nowhere"'],
    ['--feature-gates=A=true', 'unrecognized feature gate: A'],
    ['--feature-gates=APIResponseCompression=x', 'invalid value of APIResponseCompression=x'],
    ['--plain-http-port=8080 --secure-port=1', '--secure-port contradicts it'],
    ['--insecure-port=8080', 'every port requires authentication'],
  ])('%s is refused', (flags, message) => {
    expect(() => readOptions(flags.split(' '))).toThrow(message);
  });

  test('help and version', () => {
    expect(readOptions(['--help'])).toEqual({ kind: 'help' });
    expect(readOptions(['--version'])).toEqual({ kind: 'version', form: 'line' });
  });

  test('help shows every flag with default and stage', () => {
    const text = describeFlags(serverFlags);
    for (const [name, { hidden }] of Object.entries<FlagDefinition>(serverFlags)) {
      expect(text.includes(`--${name}`)).toBe(hidden !== true);
    }
    expect(text).toContain('(default 6443)');
    expect(text).toContain('OWN - ');
  });
});
