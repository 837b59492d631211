import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readWebhookCredentials } from './webhook-client.ts';

const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-credentials-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function kubeconfig(users: Record<string, string>, more: object = {}): string {
  const path = join(directory, `${Object.keys(users).length}.json`);
  const list = Object.entries(users).map(([name, token]) => ({ name, user: { token } }));
  writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: list, ...more }));
  return path;
}

test('ADM-1: a webhook’s host gets the credentials of the most specific user', async () => {
  const of = await readWebhookCredentials(
    kubeconfig({
      'a.ns.svc': 'exact',
      'a.ns.svc:8443': 'exact-port',
      '*.ns.svc': 'namespace',
      '*.svc:9443': 'port',
      '*': 'all',
    }),
  );
  const token = (host: string) => of(host)?.token?.();
  expect(token('a.ns.svc:443')).toBe('exact');
  expect(token('a.ns.svc:8443')).toBe('exact-port');
  expect(token('b.ns.svc:443')).toBe('namespace');
  expect(token('b.ns.svc:9443')).toBe('port');
  expect(token('b.ns.svc:1')).toBe('all');
  expect(token('example.com:443')).toBe('all');
});

test('ADM-1: other hosts get the credentials of the current context’s user, if any', async () => {
  const none = await readWebhookCredentials(kubeconfig({ other: 'x' }));
  expect(none('example.com:443')).toBeUndefined();
  const contexts = [{ name: 'c', context: { user: 'second', cluster: '' } }];
  const file = kubeconfig({ first: '1', second: '2' }, { contexts, 'current-context': 'c' });
  const current = await readWebhookCredentials(file);
  expect(current('example.com:443')?.token?.()).toBe('2');
  await expect(readWebhookCredentials(join(directory, 'none'))).rejects.toThrow(
    /^webhook kubeconfig .*none: /,
  );
});
