import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { startTestServer } from '../support/harness.ts';

const directory = temporaryFolder();
let files = 0;

function egressFile(selections: readonly object[], members: object = {}): string {
  files += 1;
  const path = join(directory, `${files}.yaml`);
  const apiVersion = 'apiserver.k8s.io/v1beta1';
  const kind = 'EgressSelectorConfiguration';
  const object = { apiVersion, kind, egressSelections: selections, ...members };
  writeFileSync(path, JSON.stringify(object));
  return path;
}

const start = (egressFile: string) => startTestServer({ dialect: 'kubernetes', egressFile });
const direct = (name: string) => ({ name, connection: { proxyProtocol: 'Direct' } });
const uds = { uds: { udsName: '/run/proxy.sock' } };

test('VER-7: a file with only direct connections is accepted', async () => {
  for (const apiVersion of ['apiserver.k8s.io/v1beta1', 'apiserver.k8s.io/v1alpha1']) {
    const controlPlane = apiVersion.endsWith('v1alpha1') ? 'master' : 'ControlPlane';
    const selections = ['cluster', controlPlane, 'etcd'].map(direct);
    const server = await start(egressFile(selections, { apiVersion }));
    expect((await server.get('/readyz')).status).toBe(200);
    await server.stop();
  }
});

test.each<[string, string, string]>([
  [
    'a proxy',
    egressFile([
      direct('etcd'),
      { name: 'cluster', connection: { proxyProtocol: 'GRPC', transport: uds } },
    ]),
    'connections through a proxy are not supported: cluster (GRPC)',
  ],
  [
    'a transport of a direct connection, an unknown protocol, and names that are not right',
    egressFile([
      { name: 'cluster', connection: { proxyProtocol: 'Direct', transport: uds } },
      { name: 'Cluster', connection: { proxyProtocol: 'Foo' } },
      direct('nope'),
    ]),
    `[${[
      'service.connection.transport: Invalid value: "direct": ' +
        'Transport config should be absent for direct connect',
      'service.connection.protocol: Unsupported value: "Foo": ' +
        'supported values: "Direct", "HTTPConnect", "GRPC"',
      'service.connection[1]: Duplicate value: "cluster"',
      'service.connection: Unsupported value: "nope": ' +
        'supported values: "cluster", "controlplane", "etcd"',
    ].join(', ')}]`,
  ],
  ['another kind', egressFile([], { kind: 'Other' }), 'failed to read egress selector config'],
  ['an unknown member', egressFile([], { proxy: 1 }), 'unknown field "proxy"'],
  ['an absent file', '/nowhere/egress.yaml', '/nowhere/egress.yaml'],
])('VER-7: %s ends the start', async (_, file, message) => {
  await expect(start(file)).rejects.toThrow(message);
});

test('VER-7: the flag names the file', () => {
  const read = (...args: string[]) => {
    const outcome = readOptions(args);
    return outcome.kind === 'options' ? outcome.options.config.egressFile : undefined;
  };
  expect([read('--egress-selector-config-file=/e.yaml'), read()]).toEqual(['/e.yaml', undefined]);
});
