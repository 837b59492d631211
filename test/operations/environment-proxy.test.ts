import type { SelfSubjectReview } from '@wheelhouse/kinds/types/authentication/v1';
import { systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startAdmissionService, webhook } from '../admission/admission-service.ts';
import { clientId, startProvider } from '../authentication/oidc-provider.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, type ResponseOf, type TestServer } from '../support/harness.ts';
import { startTunnelProxy, type TunnelProxy } from '../support/tunnel-proxy.ts';
import { startWebhookService } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';

/** Servers that are reached only through the proxy that the environment names, as client-go does. */

let proxy: TunnelProxy;
beforeEach(async () => {
  proxy = await untilEnd(startTunnelProxy());
  vi.stubEnv('HTTPS_PROXY', `http://${proxy.address}`);
  vi.stubEnv('NO_PROXY', 'direct.invalid');
});
afterEach(() => void vi.unstubAllEnvs());

/** The user of a token, once it is accepted. */
function userOf(server: TestServer, token: string): Promise<string | undefined> {
  const path = '/apis/authentication.svc.io/v1/selfsubjectreviews';
  const body = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
  return eventually(async () => {
    const answer = await server.post<ResponseOf<SelfSubjectReview>>(path, body, { token });
    return answer.status === 201 && answer.body.status.userInfo.username;
  }, 'the token to be accepted');
}

test('AUTHN-7: a provider is reached through the proxy of the environment', async () => {
  const hosts = ['127.0.0.1', 'issuer.example.com'];
  const certDir = temporaryFolder();
  const certificate = ensureServingCertificates({ certDir, hosts, clock: systemClock });
  const provider = await untilEnd(startProvider({ certificateOf: { certificate } }));
  const { host, port } = new URL(provider.url);
  provider.issuer = `https://issuer.example.com:${port}`;
  const server = await withServer({
    authentication: {
      oidc: {
        issuerUrl: provider.issuer,
        clientId,
        usernameClaim: 'sub',
        usernamePrefix: '-',
        groupsClaim: '',
        groupsPrefix: '',
        requiredClaims: new Map(),
        signingAlgorithms: ['RS256'],
        caFile: `${certDir}/ca.crt`,
      },
    },
  });
  expect(await userOf(server, await provider.token({ sub: 'jane' }))).toBe('jane');
  const authorities = proxy.requests.map(([authority]) => authority);
  expect(authorities).toEqual([`issuer.example.com:${port}`]);
  expect(host).toBe(`127.0.0.1:${port}`);
});

test('AUTHN-9: a token webhook is reached through the proxy of the environment', async () => {
  const service = await untilEnd(startWebhookService(['127.0.0.1', 'tokens.example.com']));
  service.answer = ({ body: { apiVersion, kind } }) => ({
    apiVersion,
    kind,
    status: { authenticated: true, user: { username: 'amy' } },
  });
  const { port } = new URL(service.url);
  const cluster = { server: `https://tokens.example.com:${port}/tokens` };
  const configFile = service.kubeconfig({ cluster });
  const server = await withServer({
    authentication: { webhook: { configFile, version: 'v1', cacheTtlMs: 0 } },
  });
  expect(await userOf(server, 'opaque')).toBe('amy');
  expect(proxy.requests).toEqual([[`tokens.example.com:${port}`, undefined]]);
});

test('ADM-2: a webhook with a URL is reached through the proxy of the environment', async () => {
  const service = await untilEnd(startAdmissionService(['127.0.0.1', 'hooks.example.com']));
  const server = await withServer();
  const { port } = new URL(service.url);
  const call = async (host: string) => {
    const name = `hook-${host.split('.', 1)[0]}`;
    const path = '/apis/admissionregistration.svc.io/v1/validatingwebhookconfigurations';
    const clientConfig = { url: `https://${host}:${port}/v`, caBundle: service.caBundle };
    await server.post(path, {
      apiVersion: 'admissionregistration.svc.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name },
      webhooks: [webhook(service, { path: '/v', clientConfig })],
    });
    const configMaps = '/api/v1/namespaces/default/configmaps';
    const answer = await server.post(`${configMaps}?dryRun=All`, configMap('a'));
    await server.remove(`${path}/${name}`);
    return answer;
  };
  expect((await call('hooks.example.com')).status).toBe(201);
  expect(service.at('/v')).toHaveLength(1);
  expect((await call('127.0.0.1')).status).toBe(201);
  const refused = await call('direct.invalid');
  expect(refused.status).toBe(500);
  vi.stubEnv('HTTPS_PROXY', 'socks5://user:hidden@127.0.0.1:1');
  const { message } = (await call('other.example.com')).body;
  expect(message).toContain('the proxy is not an http or https URL');
  expect(message).not.toContain('hidden');
  expect(proxy.requests).toEqual([[`hooks.example.com:${port}`, undefined]]);
});
