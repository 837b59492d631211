import { writeFileSync } from 'node:fs';
import type { APIVersions } from '@wheelhouse/kinds/types/meta/v1';
import { issueCertificate } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { flagRuns } from './flags-run.ts';

const { start, refuses, path } = await flagRuns();
const service = '/api/v1/namespaces/default/services/svc';
const endpoints = '/api/v1/namespaces/default/endpoints/svc';

/** Files of a certificate and its key, with which the server authenticates to kubelets. */
function clientFiles() {
  const [certFile, keyFile] = [path('kubelet.crt'), path('kubelet.key')];
  const notBefore = Date.UTC(2020, 0, 1);
  const notAfter = Date.UTC(2040, 0, 1);
  const certificate = issueCertificate({
    commonName: 'client',
    usage: 'client',
    notBefore,
    notAfter,
  });
  writeFileSync(certFile, certificate.certificatePem);
  writeFileSync(keyFile, certificate.keyPem);
  return { certFile, keyFile };
}

describe('flags of the cluster around a server', () => {
  test('API-11: --external-hostname is published to clients', async () => {
    const { get, port, as } = await start(
      '--external-hostname=api.example.com',
      '--service-account-issuer=https://api.example.com',
    );
    const address = `api.example.com:${port}`;
    const api = await get<APIVersions>('/api', { ...as, accept: 'application/json' });
    expect(api.body.serverAddressByClientCIDRs[0]?.serverAddress).toBe(address);
    const issuer = await get('/.well-known/openid-configuration', as);
    expect(issuer.body.jwks_uri).toBe(`https://${address}/openid/v1/jwks`);
  });

  test('API-11: a port in --external-hostname is kept', async () => {
    const { get, as } = await start('--external-hostname=api.example.com:443');
    const { body } = await get<APIVersions>('/api', as);
    expect(body.serverAddressByClientCIDRs[0]?.serverAddress).toBe('api.example.com:443');
  });

  test('API-11: --kubernetes-service-node-port makes the own Service a NodePort', async () => {
    const flags = ['--kubernetes-service-node-port=30443', '--advertise-address=192.0.2.7'];
    const { get, as } = await start(...flags);
    const made = await eventually(async () => {
      const answer = await get(service, as);
      return answer.status === 200 && answer.body;
    });
    expect(made.spec.type).toBe('NodePort');
    expect(made.spec.ports).toMatchObject([{ name: 'https', port: 443, nodePort: 30_443 }]);
    await eventually(async () => (await get(endpoints, as)).status === 200);
  });

  test('API-11: --endpoint-reconciler-type=none leaves the endpoints alone', async () => {
    const flags = ['--endpoint-reconciler-type=none', '--advertise-address=192.0.2.7'];
    const { get, post, as } = await start(...flags);
    await eventually(async () => (await get(service, as)).status === 200);
    const own = {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'svc' },
      subsets: [{ addresses: [{ ip: '192.0.2.99' }], ports: [{ port: 1 }] }],
    };
    const created = await post('/api/v1/namespaces/default/endpoints', own, as);
    expect(created.status).toBe(201);
    expect((await get(endpoints, as)).body.subsets).toMatchObject(own.subsets);
  });

  test('API-6: --kubelet-preferred-address-types decides which nodes are reachable', async () => {
    const { certFile, keyFile } = clientFiles();
    const { get, post, as } = await start(
      '--kubelet-preferred-address-types=InternalIP,ExternalIP',
      `--kubelet-client-certificate=${certFile}`,
      `--kubelet-client-key=${keyFile}`,
      `--kubelet-certificate-authority=${certFile}`,
      '--kubelet-timeout=10s',
    );
    const add = async (name: string, addresses: object[]) => {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { addresses } };
      expect((await post('/api/v1/nodes', node, as)).status).toBe(201);
    };
    await add('named', [
      { type: 'Hostname', address: 'n1' },
      { type: 'InternalDNS', address: 'n1.local' },
    ]);
    await add('numbered', [{ type: 'InternalIP', address: '192.0.2.1' }]);
    const named = await get('/api/v1/nodes/named/proxy/healthz', as);
    expect(named.status).toBe(500);
    expect(named.body.message).toBe(
      'no preferred addresses found; known addresses: [{Hostname n1} {InternalDNS n1.local}]',
    );
    expect((await get('/api/v1/nodes/numbered/proxy/healthz', as)).status).toBe(503);
  });

  test.each([
    ['--endpoint-reconciler-type=some', 'unknown endpoint reconciler type: some'],
    [
      '--endpoint-reconciler-type=master-count',
      'servers are counted by their leases here, use lease',
    ],
    [
      '--kubernetes-service-node-port=70000',
      '--kubernetes-service-node-port 70000 must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP',
    ],
    [
      '--kubernetes-service-node-port=80',
      "kubernetes service node port range 30000-32767 doesn't contain 80",
    ],
    [
      '--kubelet-client-certificate=/nowhere',
      '--kubelet-client-certificate and --kubelet-client-key must be given together',
    ],
    [
      '--kubelet-certificate-authority=/nowhere/ca.crt',
      '--kubelet-certificate-authority: open /nowhere/ca.crt: no such file or directory',
    ],
    ['--kubelet-timeout=5', 'missing unit in duration "5"'],
  ])('OPS-4: %s stops the start', (flag, message) => refuses(message, flag));
});
