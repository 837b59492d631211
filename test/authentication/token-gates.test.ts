import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenRequest, TokenReview } from '@wheelhouse/kinds/types/authentication/v1';
import { readFeatureGates, readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import type { ConfigChange, ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const emulatedMinor = 31;
const core = '/api/v1/namespaces/default';

/**
 * Starts a server of release 1.31 with these gates, and creates an account and its pod on a node.
 */
async function started(pairs: readonly string[] = [], change: ConfigChange = {}) {
  const { gates } = readFeatureGates(pairs, { emulatedMinor });
  const running = await withServer({
    dialect: 'kubernetes',
    emulatedMinor,
    featureGates: gates,
    ...change,
  });
  const metadata = { name: 'reader', namespace: 'default' };
  await running.post('/api/v1/nodes', { metadata: { name: 'n' } });
  await running.post(`${core}/serviceaccounts`, { metadata });
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { serviceAccountName: 'reader', nodeName: 'n', containers };
  await running.post(`${core}/pods`, { metadata: { name: 'p' }, spec });
  const ask = (kind: 'Node' | 'Pod', name: string) =>
    running.post<ResponseOf<TokenRequest>>(`${core}/serviceaccounts/reader/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { boundObjectRef: { apiVersion: 'v1', kind, name } },
    });
  const extraOf = async (token: string): Promise<string[]> => {
    const { body } = await running.post<ResponseOf<TokenReview>>(
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
    );
    expect(body.status.authenticated).toBe(true);
    const names = Object.keys(body.status.user.extra ?? {});
    return names.map((name) => name.replace('authentication.kubernetes.io/', '')).sort();
  };
  return { running, ask, extraOf };
}

/** The claims of a token that depend on gates. */
function claimsIn(token: string) {
  const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  const { jti, 'kubernetes.io': own } = JSON.parse(text);
  return { hasId: jti !== undefined, node: own.node?.name };
}

describe('gates of service account tokens', () => {
  test('VER-2: by default tokens have an id and name the node of their pod', async () => {
    const { ask, extraOf } = await started();
    const { token } = (await ask('Pod', 'p')).body.status;
    expect(claimsIn(token)).toEqual({ hasId: true, node: 'n' });
    expect(await extraOf(token)).toEqual([
      'credential-id',
      'node-name',
      'node-uid',
      'pod-name',
      'pod-uid',
    ]);
  });

  test('VER-2: without ServiceAccountTokenJTI tokens have no id', async () => {
    const { ask, extraOf } = await started(['ServiceAccountTokenJTI=false']);
    const { token } = (await ask('Pod', 'p')).body.status;
    expect(claimsIn(token)).toEqual({ hasId: false, node: 'n' });
    expect(await extraOf(token)).not.toContain('credential-id');
  });

  test('VER-2: without ServiceAccountTokenPodNodeInfo tokens name no node', async () => {
    const { ask, extraOf } = await started(['ServiceAccountTokenPodNodeInfo=false']);
    const { token } = (await ask('Pod', 'p')).body.status;
    expect(claimsIn(token)).toEqual({ hasId: true, node: undefined });
    expect(await extraOf(token)).toEqual(['credential-id', 'pod-name', 'pod-uid']);
  });

  test('VER-2: without ServiceAccountTokenNodeBinding no token is bound to a node', async () => {
    const { ask } = await started(['ServiceAccountTokenNodeBinding=false']);
    const refused = await ask('Node', 'n');
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'cannot bind token to a Node object as the "ServiceAccountTokenNodeBinding" feature-gate is disabled',
    ]);
    expect((await ask('Pod', 'p')).status).toBe(201);
  });

  test('VER-2: without its validation gate node-bound tokens are refused', async () => {
    const directory = temporaryFolder();
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const signingKeyFile = join(directory, 'sa.key');
    writeFileSync(signingKeyFile, pem);
    const kept = {
      store: { type: 'embedded' as const, directory: join(directory, 'store') },
      serviceAccounts: { signingKeyFile },
    };
    const first = await started([], kept);
    const { token } = (await first.ask('Node', 'n')).body.status;
    expect((await first.running.get('/api', { token })).status).toBe(200);
    await first.running.stop();
    const off = ['ServiceAccountTokenNodeBinding', 'ServiceAccountTokenNodeBindingValidation'];
    const { running } = await started(
      off.map((name) => `${name}=false`),
      kept,
    );
    expect((await running.get('/api', { token })).status).toBe(401);
  });

  test('VER-2: ServiceAccountTokenNodeBinding requires its validation gate', () => {
    const gate = '--feature-gates=ServiceAccountTokenNodeBindingValidation=false';
    expect(() => readOptions(['--emulated-version=1.31', gate])).toThrow(
      'the "ServiceAccountTokenNodeBinding" feature gate can only be enabled if the "ServiceAccountTokenNodeBindingValidation" feature gate is also enabled',
    );
    const both = `${gate},ServiceAccountTokenNodeBinding=false`;
    expect(readOptions(['--emulated-version=1.31', both]).kind).toBe('options');
  });
});
