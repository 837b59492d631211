import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { main } from '../../main.ts';
import { readOptions, type ServerOptions } from '../command-line.ts';

function configOf(...args: readonly string[]): ServerOptions['config'] {
  const outcome = readOptions(args);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  return outcome.options.config;
}

describe('STORE-2: the flags of etcd', () => {
  test('have kube-apiserver’s defaults', () => {
    const { store, leaderElection, compactionIntervalMs } = configOf('--etcd-servers=http://a:1');
    expect(store).toEqual({
      type: 'etcd',
      servers: ['http://a:1'],
      prefix: '/registry',
      healthcheckTimeoutMs: 2000,
      readycheckTimeoutMs: 2000,
      countMetricMs: 60_000,
      sizeMetricMs: 30_000,
      leaseReuseMs: 60_000,
    });
    expect(leaderElection).toEqual({
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2000,
      name: 'wheelhouse-controllers',
    });
    expect(compactionIntervalMs).toBe(300_000);
  });

  test('cover every setting', () => {
    const flags = [
      '--storage-backend=etcd3',
      '--etcd-servers=https://a:2379,https://b:2379',
      '--etcd-prefix=other//place/',
      '--etcd-cafile=ca',
      '--etcd-certfile=cert',
      '--etcd-keyfile=key',
      '--etcd-servers-overrides=/events#https://c:1;https://d:1,apps/deployments#https://e:1',
      '--storage-media-type=application/json',
      '--lease-reuse-duration-seconds=5',
      '--leader-elect=false',
    ];
    const { store, storedBuiltins, leaderElection } = configOf(...flags);
    expect(storedBuiltins).toBe('json');
    expect(store).toMatchObject({
      servers: ['https://a:2379', 'https://b:2379'],
      prefix: '/other/place',
      caFile: 'ca',
      certFile: 'cert',
      keyFile: 'key',
      leaseReuseMs: 5000,
      overrides: [
        { group: '', resource: 'events', servers: ['https://c:1', 'https://d:1'] },
        { group: 'apps', resource: 'deployments', servers: ['https://e:1'] },
      ],
    });
    expect(leaderElection).toBeUndefined();
  });

  test('STORE-2: --storage-media-type takes the dialect’s protobuf', () => {
    const type = '--storage-media-type=application/vnd.kubernetes.protobuf';
    const ofDialect = configOf('--etcd-servers=http://a:1', type, '--dialect=kubernetes');
    expect(ofDialect.storedBuiltins).toBe('protobuf');
    expect(() => configOf('--etcd-servers=http://a:1', type, '--dialect=svc')).toThrow(
      'allowed values: application/json, application/vnd.svc.protobuf',
    );
  });

  test('take the addresses of Unix sockets', () => {
    const places = ['unix:///run/etcd.sock', 'unixs://localhost:2379', 'unix:etcd'];
    expect(configOf(`--etcd-servers=${places.join(',')}`).store).toMatchObject({ servers: places });
  });

  const servers = '--etcd-servers=http://a:1';
  test.each([
    ['--storage-backend=etcd3', '--etcd-servers must be specified'],
    ['--etcd-prefix=/x', '--etcd-prefix has no effect without --etcd-servers'],
    ['--leader-elect=true', '--leader-elect has no effect without --etcd-servers'],
    [`${servers} --storage-backend=memory`, '--storage-backend=memory contradicts --etcd-servers'],
    [`${servers} --storage-backend=embedded`, 'contradicts --etcd-servers'],
    [`${servers} --storage-media-type=application/yaml`, 'allowed values: application/json'],
    [`${servers} --etcd-certfile=a`, '--etcd-certfile and --etcd-keyfile must be given together'],
    ['--etcd-servers=ftp://a:1', 'the etcd server "ftp://a:1" is not a URL such as'],
    ['--etcd-servers=unix://', 'the etcd server "unix://" is not a URL such as'],
    [`${servers} --etcd-servers-overrides=events#http://b:1`, 'must be of format: group/resource#'],
    [`${servers} --etcd-servers-overrides=/events#b://c`, 'the etcd server "b://c" is not a URL'],
    [
      `${servers} --etcd-healthcheck-timeout=0`,
      '--etcd-healthcheck-timeout must be greater than 0',
    ],
    [`${servers} --lease-reuse-duration-seconds=0`, 'must be greater than 0'],
    [`${servers} --etcd-db-metric-poll-interval=-1s`, 'can not be negative value'],
    [`${servers} --leader-elect-lease-duration=10s`, 'must be greater than --leader-elect-renew'],
    [`${servers} --leader-elect-retry-period=9s`, 'must be greater than --leader-elect-retry'],
    [`${servers} --leader-elect-resource-lock=configmaps`, 'is not leases'],
  ])('%s is refused', (flags, message) => {
    expect(() => readOptions(flags.split(' '))).toThrow(message);
  });

  test('refuse flags of the unused own store: one line and exit code 1', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-flags-'));
    mkdirSync(join(directory, 'store'));
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      expect(await main(['serve', servers, `--data-dir=${directory}`])).toBe(1);
      expect(said.mock.calls).toEqual([
        [
          `error: --data-dir ${directory} has an embedded store, which --etcd-servers would leave unused: give another directory\n`,
        ],
      ]);
    } finally {
      said.mockRestore();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
