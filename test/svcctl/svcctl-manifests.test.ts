import { createServer } from 'node:http';
import { dialectNames, systemClock } from '@wheelhouse/machinery';
import { describe, expect, onTestFinished, test } from 'vitest';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { listenLocally } from '../support/local-server.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = (name: string, data: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
});
const gold = { labels: { tier: 'gold' } };
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
const labels = { app: 'd' };
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd' },
  spec: {
    replicas: 2,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
};

printsLikeKubectl('manifests', [
  // An object from another server has a resourceVersion of that server.
  ['create -f -', documents(map('x', { a: '1' }, { resourceVersion: '12' }))],
  ['create -f -', documents(map('x', {}), map('y', { a: '1' }), map('Z', {}), map('z', {}))],
  ['create -f -', documents(map('before', {}), { apiVersion: 'v1' }, map('after', {}))],
  ['create -l tier=gold -f -', documents(map('tin', {}), map('gold', {}, gold))],
  ['create -l tier=lead -f -', documents(map('tin', {}))],
  ['replace -f -', documents(map('none', {}), map('y', { a: '2' }))],
  ['apply --server-side -f -', documents(map('Q', {}), map('q', { a: '1' }))],
  ['apply --server-side -l tier=gold -f -', documents(map('r', {}), map('s', {}, gold))],
  ['get cm -o name'],
  ['create --raw /api/v1/namespaces -f -', JSON.stringify(pod)],
  ['get cm x --watch --request-timeout=1s'],
  ['get cm x --watch-only --request-timeout=1s'],
  ['apply view-last-applied cm/x'],
  ['apply set-last-applied -f -', documents(map('x', { a: '1' }))],
  [
    'apply set-last-applied --create-annotation --dry-run=server -f -',
    documents(map('x', { a: '1' })),
  ],
  ['apply set-last-applied --create-annotation -f -', documents(map('x', { a: '1' }))],
  ['apply set-last-applied -f -', documents(map('x', { b: '1' }))],
  ['apply view-last-applied cm/x'],
  ['apply view-last-applied cm x -o json'],
  ['apply view-last-applied cm x -o name'],
  ['apply set-last-applied -f -', documents(map('x', { b: '1' }))],
  ['apply view-last-applied -f -', documents(map('x', {}))],
  ['get cm x -o yaml --show-managed-fields'],
  ['apply view-last-applied cm/none'],
  ['replace --save-config -f -', documents(map('y', { a: '3' }))],
  ['apply view-last-applied cm y'],
  ['diff --server-side=false -f -', documents(map('y', { a: '3' }))],
  ['diff --server-side=false -f -', documents(map('y', { a: '4' }))],
  ['diff --server-side=false -f -', documents(map('Y', {}))],
  ['apply --server-side=false -f -', documents(map('y', { a: '4' }))],
  ['apply --server-side=false -f -', documents(map('y', { a: '4' }))],
  ['get cm y -o yaml --show-managed-fields=false'],
  ['create -f -', documents(deployment)],
  ['get deployment d --subresource=scale'],
  ['get deployment d --subresource=scale -o yaml'],
  ['get deployment d --subresource=nope'],
  ['get deployment --subresource=status'],
  ['patch deployment d --subresource=scale --type=merge -p {"spec":{"replicas":1}}'],
  ['get cm x --warnings-as-errors -o name'],
]);

const manifest = (name: string, data: object, more: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, ...more });

/** Serves objects, redirects to them, and an error that ends after two responses. */
async function startFileServer(): Promise<{ readonly url: string; readonly paths: string[] }> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    if (path === '/moved') response.writeHead(302, { location: '/maps' }).end();
    else if (path === '/maps') response.end(documents(map('one', {}), map('two', {})));
    else if (path === '/busy' && paths.length > 2) response.end(documents(map('three', {})));
    else response.writeHead(path === '/busy' ? 503 : 404).end();
  });
  const port = await listenLocally(server);
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${port}`, paths };
}

describe('CLIENT-1: objects at URLs', () => {
  const on = svcctlOn('kubernetes');

  test('CLIENT-1: -f reads URLs, follows redirects, and reports those it cannot read', async () => {
    const { url, paths } = await startFileServer();
    expect(await on.ctl(`create -f ${url}/moved -f ${url}/none`)).toEqual({
      code: 1,
      out: 'configmap/one created\nconfigmap/two created\n',
      err: `error: unable to read URL "${url}/none", server reported 404 Not Found, status code=404\n`,
    });
    expect(paths).toEqual(['/moved', '/maps', '/none']);
    expect((await on.ctl(`get -f ${url}/maps -o name`)).out).toBe('configmap/one\nconfigmap/two\n');
    expect((await on.ctl(`create -f ${url.replace(/:\d+$/, ':99999')}`)).err).toContain(
      'the URL passed to filename "http://127.0.0.1:99999" is not valid',
    );
  });

  test('CLIENT-1: a URL is requested again after an error of its server', async () => {
    const { url, paths } = await startFileServer();
    const delaysMs: number[] = [];
    on.home.clock = {
      ...systemClock,
      after: (delayMs, task) => {
        delaysMs.push(delayMs);
        return systemClock.after(0, task);
      },
    };
    try {
      expect((await on.ctl(`create -f ${url}/busy`)).out).toBe('configmap/three created\n');
    } finally {
      on.home.clock = undefined;
    }
    expect(paths).toEqual(['/busy', '/busy', '/busy']);
    expect(delaysMs.filter((delayMs) => delayMs === 1000)).toHaveLength(2);
  });
});

describe.each(dialectNames)('CLIENT-1: manifests, dialect %s', (dialectName) => {
  const on = svcctlOn(dialectName);

  test('CLIENT-1: --warnings-as-errors makes warnings fail', async () => {
    const line = 'create --validate=warn --warnings-as-errors -f -';
    const { code, out, err } = await on.ctl(line, manifest('x', {}, { more: 1, most: 2 }));
    expect({ code, out }).toEqual({ code: 1, out: 'configmap/x created\n' });
    expect(err).toMatch(/^Warning: .*\nWarning: .*\nerror: 2 warnings received\n$/);
    expect((await on.ctl('get cm x -o name --warnings-as-errors')).code).toBe(0);
  });

  test('CLIENT-1: replace writes the whole object, which must exist', async () => {
    await on.ctl('create -f -', manifest('x', { a: '1', b: '2' }));
    expect((await on.ctl('replace -f -', manifest('x', { c: '3' }))).out).toBe(
      'configmap/x replaced\n',
    );
    expect((await on.ctl('get cm x -o jsonpath={.data}')).out).toBe('{"c":"3"}');
    const absent = await on.ctl('replace -f -', manifest('y', {}));
    expect(absent).toMatchObject({ code: 1, out: '' });
    expect(absent.err).toContain('configmaps "y" not found');
  });
});
