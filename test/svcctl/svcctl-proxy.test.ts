import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

let namespace: string;
let running: { stop(): Promise<number> }[] = [];

const server = await withUsers([{ name: 'jane' }]);
const home = untilEnd(svcctlFor(server));
beforeEach(async () => {
  namespace = await freshNamespace(server);
});
afterEach(async () => {
  await Promise.all(running.map((proxy) => proxy.stop()));
  running = [];
});

/** Starts a proxy on a free port and returns its address. */
async function startProxy(flags = ''): Promise<string> {
  const proxy = home.start(`proxy --port=0${flags}`);
  running.push(proxy);
  const address = await eventually(
    async () => /Starting to serve on (\S+)\n/.exec(proxy.out())?.[1],
    `the proxy; ${proxy.err()}`,
  );
  return `http://${address}`;
}

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

function send(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = options;
  const { port, hostname } = new URL(url);
  // Sent as is: URL would resolve dot segments.
  const path = url.slice(url.indexOf('/', 'http://'.length));
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path, method, headers, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    request.end(body);
  });
}

describe('CLIENT-1: svcctl proxy', () => {
  test('CLIENT-1: proxy forwards requests as the kubeconfig’s user', async () => {
    const proxy = await startProxy();
    expect(proxy).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const maps = `${proxy}/api/v1/namespaces/${namespace}/configmaps`;
    const created = await send(maps, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(configMap('x')),
    });
    expect(created.status).toBe(201);
    const got = await send(`${maps}/x`, { headers: { accept: 'application/yaml' } });
    expect(got.headers['content-type']).toBe('application/yaml');
    expect(got.text).toContain('  name: x\n');
    const list = await send(`${maps}?labelSelector=a%3Db&limit=1`);
    expect(JSON.parse(list.text).items).toEqual([]);
    const absent = await send(`${maps}/y`);
    expect(absent.status).toBe(404);
    expect(JSON.parse(absent.text).message).toBe('configmaps "y" not found');
    expect((await send(`${maps}/x`, { method: 'DELETE' })).status).toBe(200);
    const head = await send(`${proxy}/version`, { method: 'HEAD' });
    expect(head).toMatchObject({ text: '' });
    const asJane = await send(`${proxy}/api/v1/nodes`, {
      headers: { authorization: 'Bearer jane' },
    });
    expect(asJane.status).toBe(403);
    expect(JSON.parse(asJane.text).message).toContain('User "jane"');
  });

  test('CLIENT-1: proxy streams a watch and ends it when it stops', async () => {
    const proxy = await startProxy();
    const { port } = new URL(proxy);
    const path = `/api/v1/namespaces/${namespace}/configmaps?watch=1`;
    let text = '';
    const request = http.get({ port, path, host: '127.0.0.1', agent: false });
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      request.on('response', resolve);
      request.on('error', reject);
    });
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('error', () => {});
    const ended = new Promise((resolve) => response.on('close', resolve));
    await server.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('seen'));
    await eventually(async () => text.includes('"seen"'), 'the event');
    expect(JSON.parse(text.split('\n')[0] ?? '').type).toBe('ADDED');
    expect(await running[0]?.stop()).toBe(130);
    await ended;
  });

  test('CLIENT-1: proxy refuses unknown hosts and paths that run programs', async () => {
    const proxy = await startProxy();
    const { port } = new URL(proxy);
    const status = async (path: string, headers = {}) =>
      (await send(proxy + path, { headers })).status;
    expect(await status('/version', { host: `evil.example:${port}` })).toBe(403);
    for (const host of ['localhost', `localhost:${port}`, `[::1]:${port}`]) {
      expect(await status('/version', { host })).toBe(200);
    }
    const pod = `/api/v1/namespaces/${namespace}/pods/p`;
    for (const path of [`${pod}/exec`, `${pod}/attach`, `${pod}/%65xec`, `${pod}/x/../exec`]) {
      expect(await status(path)).toBe(403);
    }
    expect(await status('/api/%zz')).toBe(400);
  });

  test('TRUST-6: pages of other sites cannot act through proxy as its user', async () => {
    const proxy = await startProxy();
    const maps = `${proxy}/api/v1/namespaces/${namespace}/configmaps`;
    const post = async (headers: Record<string, string>) => {
      // Such a page can send a body without a content type without a preflight.
      const body = JSON.stringify({ metadata: { generateName: 'sent-' } });
      return (await send(maps, { method: 'POST', headers, body })).status;
    };
    const evil = 'https://evil.example';
    for (const site of ['cross-site', 'same-site']) {
      for (const mode of ['no-cors', 'navigate']) {
        const forged = { origin: evil, 'sec-fetch-site': site, 'sec-fetch-mode': mode };
        expect(await post(forged), `${site} ${mode}`).toBe(403);
      }
      const read = { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' };
      expect((await send(maps, { headers: read })).status, site).toBe(403);
    }
    const { host } = new URL(proxy);
    for (const origin of [evil, 'null', 'http://127.0.0.1', `https://${host}`]) {
      expect(await post({ origin }), origin).toBe(403);
    }
    expect((await send(maps)).text).not.toContain('"sent-');
    const followed = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect((await send(maps, { headers: followed })).status).toBe(200);
    expect(await post({ origin: proxy, 'sec-fetch-site': 'same-origin' })).toBe(201);
    expect(await post({ origin: proxy })).toBe(201);
    expect(await post({})).toBe(201);
    const open = await startProxy(' --disable-filter');
    expect((await send(`${open}/version`, { headers: { origin: evil } })).status).toBe(200);
  });

  test('CLIENT-1: proxy applies its filters, or none', async () => {
    const strict = await startProxy(
      ' --reject-methods=POST,DELETE --accept-paths=^/api,^/version$ --reject-paths=secrets',
    );
    const status = async (path: string, method = 'GET') =>
      (await send(strict + path, { method })).status;
    expect(await status('/version')).toBe(200);
    expect(await status('/apis')).toBe(200);
    expect(await status('/healthz')).toBe(403);
    expect(await status('/api/v1/secrets')).toBe(403);
    expect(await status(`/api/v1/namespaces/${namespace}/configmaps/x`, 'DELETE')).toBe(403);
    const open = await startProxy(' --disable-filter');
    expect((await send(`${open}/version`, { headers: { host: 'evil.example' } })).status).toBe(200);
    // An empty list of expressions matches nothing.
    const closed = await startProxy(' --accept-hosts=');
    expect((await send(`${closed}/version`)).status).toBe(403);
    const unrejecting = await startProxy(' --reject-paths=');
    expect((await send(`${unrejecting}/version`)).status).toBe(200);
    const wrong = await home.run('proxy --port=0 --accept-paths=(');
    expect(wrong.code).toBe(1);
    expect(wrong.err).toContain('error: Error compiling re: ');
  });

  test('CLIENT-1: proxy serves the API and static files below their prefixes', async () => {
    mkdirSync(join(home.folder, 'files', 'inner'), { recursive: true });
    home.write('files/page.html', '<p>here</p>');
    home.write('files/inner/index.html', 'index');
    home.write('secret.txt', 'secret');
    symlinkSync(join(home.folder, 'secret.txt'), join(home.folder, 'files', 'link'));
    const proxy = await startProxy(' --api-prefix=/custom --www=files --www-prefix=/my');
    const get = async (path: string) => {
      const { status, text } = await send(proxy + path);
      return { status, text };
    };
    expect((await get('/custom/version')).text).toContain('gitVersion');
    expect((await get('/version')).status).toBe(404);
    const page = await send(`${proxy}/my/page.html`);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.text).toBe('<p>here</p>');
    expect((await get('/my/inner/')).text).toBe('index');
    for (const path of ['/my/../secret.txt', '/my/%2e%2e/secret.txt', '/my/..%2fsecret.txt']) {
      expect((await get(path)).status).toBe(404);
    }
    expect((await get('/my/link')).status).toBe(404);
    expect((await get('/my/absent')).status).toBe(404);
    for (const [path, location] of [
      ['/my/inner', 'inner/'],
      ['/my/inner/index.html', './'],
      ['/my/page.html/', '../page.html'],
      ['//custom//version?a=b%2Fc', '/custom/version?a=b%2Fc'],
    ] as const) {
      const redirect = await send(proxy + path);
      expect(redirect).toMatchObject({ status: 301, headers: { location } });
    }
    const api = await startProxy(' --api-prefix=/api/');
    expect((await send(`${api}/api/v1/namespaces`)).status).toBe(200);
    expect((await send(`${api}/version`)).status).toBe(404);
  });

  test('CLIENT-1: proxy lists a folder without an index page', async () => {
    mkdirSync(join(home.folder, 'listed', 'inner'), { recursive: true });
    home.write("listed/a<'b?", '');
    home.write('listed/c:d', 'colon');
    const proxy = await startProxy(' --www=listed');
    const list = await send(`${proxy}/static/`);
    expect(list).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });
    expect(list.text).toBe(
      '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n' +
        '<a href="a%3C%27b%3F">a&lt;&#39;b?</a>\n' +
        '<a href="./c:d">c:d</a>\n<a href="inner/">inner/</a>\n</pre>\n',
    );
    expect((await send(`${proxy}/static/c:d`)).text).toBe('colon');
  });

  test('CLIENT-1: proxy listens on a socket file and reports invalid arguments', async () => {
    const socketPath = join(home.folder, 'sock');
    writeFileSync(join(home.folder, 'plain'), '');
    const proxy = home.start(`proxy --unix-socket=${socketPath}`);
    running.push(proxy);
    await eventually(async () => proxy.out() === `Starting to serve on ${socketPath}\n`, 'start');
    const { statSync } = await import('node:fs');
    expect(statSync(socketPath).mode & 0o077).toBe(0);
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'localhost' };
      const request = http.get({ socketPath, path: '/version', headers, agent: false });
      request.on('response', (response) => resolve(response.resume().statusCode));
      request.on('error', reject);
    });
    expect(status).toBe(200);
    expect((await home.run(`proxy --unix-socket=${socketPath} --port=1`)).err).toBe(
      'error: cannot set --unix-socket and --port at the same time\n',
    );
    expect((await home.run('proxy --port=70000')).err).toBe('error: invalid port 70000\n');
    const usedPort = new URL(await startProxy()).port;
    expect((await home.run(`proxy --port=${usedPort}`)).err).toContain('EADDRINUSE');
    expect((await home.run('proxy x')).err).toBe('error: unexpected arguments: x\n');
    const unreachable = await home.start('proxy --port=0 --server=https://127.0.0.1:1');
    running.push(unreachable);
    const address = await eventually(
      async () => /on (\S+)\n/.exec(unreachable.out())?.[1],
      'start',
    );
    const refused = await send(`http://${address}/version`);
    expect(refused.status).toBe(500);
    expect(refused.text).toContain('The connection to the server 127.0.0.1:1 was refused');
  });
});
