import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFile, temporaryFolder } from '../support/cleanup.ts';
import { adminToken } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * One server delegates everything to another: the requests of the first must match the answers of
 * the second.
 */
const directory = temporaryFolder();
const rbac = 'rbac.authorization.svc.io';

function kubeconfig(path: string): string {
  const file = join(directory, `${path.replaceAll('/', '-')}.json`);
  const cluster = { server: authority.url + path, 'certificate-authority-data': ca() };
  const body = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: adminToken } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(file, JSON.stringify(body));
  return file;
}
const ca = () => Buffer.from(authority.server.caPem ?? '').toString('base64');

const tokenFile = temporaryFile('tokens.csv', 'amy-token,amy,uid-1,"dev"\n');
const authority = await withServer({ authentication: { tokenFile } });
beforeAll(async () => {
  const metadata = { name: 'dev-reads' };
  const apiVersion = `${rbac}/v1`;
  const rules = [
    { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] },
    { verbs: ['get'], nonResourceURLs: ['/logs*'] },
  ];
  const path = `/apis/${apiVersion}`;
  const role = { apiVersion, kind: 'ClusterRole', metadata, rules };
  expect((await authority.post(`${path}/clusterroles`, role)).status).toBe(201);
  const binding = {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'dev-reads' },
    subjects: [{ apiGroup: rbac, kind: 'Group', name: 'dev' }],
  };
  expect((await authority.post(`${path}/clusterrolebindings`, binding)).status).toBe(201);
});

test('AUTHN-9: a server delegates authentication and authorization to another', async () => {
  const server = await withServer({
    authorizationModes: ['Webhook'],
    authorization: {
      webhook: {
        configFile: kubeconfig(`/apis/authorization.svc.io/v1/subjectaccessreviews`),
        version: 'v1',
        authorizedTtlMs: 0,
        unauthorizedTtlMs: 0,
      },
    },
    authentication: {
      webhook: {
        configFile: kubeconfig(`/apis/authentication.svc.io/v1/tokenreviews`),
        version: 'v1',
        cacheTtlMs: 0,
      },
    },
  });
  const amy = { token: 'amy-token' };
  const list = '/api/v1/namespaces/default/configmaps';
  expect((await server.get(list, amy)).status).toBe(200);
  expect((await server.get(`${list}?labelSelector=a%3Db`, amy)).status).toBe(200);
  const refused = await server.remove(`${list}/x`, undefined, amy);
  expect(refused.status).toBe(403);
  expect(refused.body.message).toMatch(
    /^configmaps "x" is forbidden: User "amy" cannot delete resource "configmaps"/,
  );
  expect((await server.get('/logs/x', amy)).status).toBe(404);
  expect((await server.get('/metrics', amy)).status).toBe(403);
  expect((await server.get(list, { token: 'other' })).status).toBe(401);
});
