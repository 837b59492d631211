import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { expect, test } from 'vitest';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { sample, scrape } from './metric-samples.ts';

/** Metrics of the senders of requests, and of the documents created for them. */

const server = await withServer();

const counted = (text: string, name: string, labels: Record<string, string> = {}): number =>
  sample(text, name, labels) || 0;

test('OPS-1: token verdicts are counted by cache hit', async () => {
  const namespace = await freshNamespace(server);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'a' } };
  await server.post(accounts, account);
  const request = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
  const { token } = (await server.post<ResponseOf<TokenRequest>>(`${accounts}/a/token`, request))
    .body.status;
  const verdicts = (text: string) => ({
    hits: counted(text, 'authentication_token_cache_request_total', { status: 'hit' }),
    misses: counted(text, 'authentication_token_cache_request_total', { status: 'miss' }),
    found: counted(text, 'authentication_token_cache_fetch_total', { status: 'ok' }),
    failed: counted(text, 'authentication_token_cache_fetch_total', { status: 'error' }),
  });
  const before = verdicts(await scrape(server));
  await server.get('/version', { token });
  await server.get('/version', { token });
  await server.get('/version', { token: 'nobodys' });
  await server.get('/version', { token: `${token.slice(0, -8)}AAAAAAAA` });
  await server.get('/version', { token: undefined });
  const review = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenReview', spec: { token } };
  const reviewed = await server.post('/apis/authentication.svc.io/v1/tokenreviews', review);
  expect(reviewed.body.status.authenticated).toBe(true);
  const text = await scrape(server);
  const after = verdicts(text);
  expect(after.misses - before.misses).toBe(3);
  expect(after.found - before.found).toBe(2);
  expect(after.failed - before.failed).toBe(1);
  // The token's second use and its review, the reviewer's own token, and the scrape.
  expect(after.hits - before.hits).toBe(4);
  const durations = 'authentication_token_cache_request_duration_seconds_count';
  expect(counted(text, durations, { status: 'hit' })).toBe(after.hits);
  expect(counted(text, durations, { status: 'miss' })).toBe(after.misses);
  const active = 'authentication_token_cache_active_fetch_count';
  expect(sample(text, active, { status: 'in_flight' })).toBe(0);
  expect(sample(text, active, { status: 'blocked' })).toBe(0);
});

test('OPS-1: the server’s own requests are counted separately', async () => {
  const name = 'apiserver_selfrequest_total';
  const lists = { verb: 'LIST', resource: 'configmaps', subresource: '' };
  await server.get('/api/v1/configmaps');
  expect(counted(await scrape(server), name, lists)).toBe(0);
  const headers = { 'impersonate-user': 'system:apiserver' };
  await server.get('/api/v1/configmaps', { headers });
  await server.get('/readyz', { headers });
  await server.get('/api/v1/made-up-by-a-client', { headers });
  const text = await scrape(server);
  expect(counted(text, name, lists)).toBe(1);
  expect(counted(text, name, { verb: 'GET', resource: '', subresource: '/readyz' })).toBe(1);
  expect(text).not.toContain('made-up-by-a-client');
});

test('OPS-1: aggregated discovery documents are counted when they are built', async () => {
  const name = 'aggregator_discovery_aggregation_count_total';
  const before = counted(await scrape(server), name);
  const accept = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';
  const read = () => server.get('/apis', { headers: { accept } });
  expect((await read()).status).toBe(200);
  const once = counted(await scrape(server), name);
  expect(once).toBe(before + 1);
  expect((await read()).status).toBe(200);
  expect(counted(await scrape(server), name)).toBe(once);
});

test('OPS-1: log requests are counted by certificate verification', async () => {
  const name = 'kube_apiserver_pod_logs_insecure_backend_total';
  const path = '/api/v1/namespaces/default/pods/none/log';
  expect((await server.get(path)).status).toBe(404);
  expect((await server.get(path)).status).toBe(404);
  expect((await server.get(`${path}?insecureSkipTLSVerifyBackend=true`)).status).toBe(404);
  const text = await scrape(server);
  expect(counted(text, name, { usage: 'enforce_tls' })).toBe(2);
  expect(counted(text, name, { usage: 'skip_tls_allowed' })).toBe(1);
  expect(sample(text, 'kube_apiserver_pod_logs_backend_tls_failure_total')).toBe(0);
});
