import http2 from 'node:http2';
import https from 'node:https';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { connect, eventually } from '../support/harness.ts';
import { pausedCreate } from '../support/paused-create.ts';
import { flagRuns } from './flags-run.ts';

const { start, refuses } = await flagRuns();
const configMaps = '/api/v1/namespaces/default/configmaps';

/** An answer over HTTP/1.1. */
function plainGet(url: string, headers: Record<string, string>) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>(
    (resolve, reject) => {
      const request = https.get(url, { rejectUnauthorized: false, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      });
      request.on('error', reject);
    },
  );
}

/** A client that sends all requests over one HTTP/2 connection. */
function oneConnection(url: string) {
  const session = http2.connect(url, { rejectUnauthorized: false });
  atEnd(() => session.destroy());
  session.on('error', () => {});
  let isLeft = false;
  session.on('goaway', () => {
    isLeft = true;
  });
  const closed = new Promise<void>((resolve) => session.on('close', resolve));
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    new Promise<number>((resolve, reject) => {
      const stream = session.request({ ':path': path, ...headers });
      let status = 0;
      stream.on('response', (head) => {
        status = Number(head[':status']);
      });
      stream.on('end', () => resolve(status));
      stream.on('error', reject);
      stream.resume();
    });
  return { ask, closed, isLeft: () => isLeft };
}

const corsHeaders = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
};

describe('flags about answers', () => {
  test('OPS-4: --cors-allowed-origins admits pages of those origins only', async () => {
    const { get, request, watch, as } = await start(
      '--cors-allowed-origins=^https://ok\\.example\\.com(:|$),//other\\.example$',
    );
    const from = (origin: string) => ({ ...as, headers: { origin } });
    const origin = 'https://ok.example.com:8443';
    const allowed = { 'access-control-allow-origin': origin, ...corsHeaders };
    expect((await get(configMaps, from(origin))).headers).toMatchObject(allowed);
    const refused = await get('/api/v1/nothing', from(origin));
    expect(refused.status).toBe(404);
    expect(refused.headers).toMatchObject(allowed);
    const watching = await watch(`${configMaps}?watch=true`, from(origin));
    expect(watching.headers).toMatchObject(allowed);
    watching.close();
    const asked = await request('OPTIONS', configMaps, { token: undefined, headers: { origin } });
    expect(asked.status).toBe(204);
    expect(asked.headers).toMatchObject({ ...allowed, 'cache-control': 'no-cache, private' });
    expect(asked.headers['audit-id']).toBeTypeOf('string');
    for (const stranger of ['https://ok.example.com.evil.org', 'http://ok.example.com']) {
      const answer = await get(configMaps, from(stranger));
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.headers).filter((name) => /^access-/.test(name))).toEqual([]);
    }
    expect(
      (await request('OPTIONS', configMaps, from('https://stranger.example'))).status,
    ).not.toBe(204);
  });

  test('OPS-4: --strict-transport-security-directives adds a header to every answer', async () => {
    const { get, server } = await start(
      '--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload',
    );
    const value = 'max-age=31536000; includeSubDomains; preload';
    for (const path of ['/version', '/readyz', '/api/v1/nodes', '/console/']) {
      const answer = await get(path, { token: undefined });
      expect(answer.headers['strict-transport-security']).toBe(value);
    }
    const plain = await plainGet(`${server.url}/version`, {});
    expect(plain.headers['strict-transport-security']).toBe(value);
  });

  test('OPS-4: --goaway-chance closes connections after their last answer', async () => {
    const { server } = await start('--goaway-chance=0.02');
    const client = oneConnection(server.url);
    const headers = { authorization: `Bearer ${server.token}` };
    let asked = 0;
    for (; !client.isLeft() && asked < 3000; asked += 1) {
      expect(await client.ask('/version', headers)).toBe(200);
    }
    expect(client.isLeft()).toBe(true);
    await client.closed;
  });

  const withAnonymous = ['--authorization-mode=RBAC', '--anonymous-auth=true'];

  describe.each([
    ['anonymous requests', {}, 200],
    ['requests with a bad token', { authorization: 'Bearer wrong' }, 401],
  ] as const)('%s over HTTP/2', (_, headers, status) => {
    test('AUTHN-1, TRUST-4: the server leaves the connection after the answer', async () => {
      const { server } = await start(...withAnonymous);
      const client = oneConnection(server.url);
      const known = { authorization: `Bearer ${server.token}` };
      for (let asked = 0; asked < 3; asked += 1) {
        expect(await client.ask('/version', known)).toBe(200);
      }
      expect(client.isLeft()).toBe(false);
      expect(await client.ask('/version', headers)).toBe(status);
      await client.closed;
      expect(client.isLeft()).toBe(true);
    });

    test('OPS-4: without UnauthenticatedHTTP2DOSMitigation, it goes on', async () => {
      const { server } = await start(
        ...withAnonymous,
        '--feature-gates=UnauthenticatedHTTP2DOSMitigation=false',
      );
      const client = oneConnection(server.url);
      for (let asked = 0; asked < 3; asked += 1) {
        expect(await client.ask('/version', headers)).toBe(status);
      }
      expect(client.isLeft()).toBe(false);
    });
  });
});

describe('shutdown by flags', () => {
  test('HEALTH-3: --shutdown-send-retry-after answers 429 while others finish', async () => {
    const { server, get, watch, as } = await start('--shutdown-send-retry-after');
    const watching = await watch(`${configMaps}?watch=true`, as);
    const paused = pausedCreate(server, 'in-flight');
    await eventually(async () => {
      const { text } = await get('/metrics', as);
      return /apiserver_current_inflight_requests\{request_kind="mutating"\} [1-9]/.test(text);
    }, 'the paused request in flight');
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    const headers = { authorization: `Bearer ${server.token}` };
    const refused = await eventually(async () => {
      const answer = await plainGet(`${server.url}${configMaps}`, headers);
      return answer.status === 429 && answer;
    });
    expect(refused.text).toBe('The apiserver is shutting down, please try again later.\n');
    expect(refused.headers).toMatchObject({
      'retry-after': '5',
      connection: 'close',
      'content-type': 'text/plain; charset=utf-8',
    });
    expect((await plainGet(`${server.url}/readyz`, headers)).status).toBe(500);
    expect((await plainGet(`${server.url}/livez`, headers)).status).toBe(200);
    const newcomer = connect(server.url);
    atEnd(newcomer.close);
    expect(await newcomer.calls.get('/version', as)).toMatchObject({ status: 429 });
    paused.finish();
    expect(await paused.status).toBe(201);
    await watching.ended;
    expect(watching.events.map(({ type }) => type).at(-1)).toBe('ADDED');
    expect(await server.exited).toBe(0);
  });

  test('HEALTH-3: --shutdown-watch-termination-grace-period spreads the ends of watches', async () => {
    const { server, watch, as } = await start('--shutdown-watch-termination-grace-period=30s');
    const ended: number[] = [];
    const watches = await Promise.all(
      Array.from({ length: 60 }, () => watch(`${configMaps}?watch=true`, as)),
    );
    const all = watches.map(({ ended: end }) => end.then(() => ended.push(performance.now())));
    server.child.kill('SIGTERM');
    await Promise.all(all);
    // At 200 per second, the last of 60 is sent about 275 ms after the first.
    expect((ended.at(-1) ?? 0) - (ended[0] ?? 0)).toBeGreaterThan(100);
    expect(await server.exited).toBe(0);
  });
});

test.each([
  ['--goaway-chance=0.03', '--goaway-chance can not be less than 0 or greater than 0.02'],
  ['--goaway-chance=-1', '--goaway-chance can not be less than 0 or greater than 0.02'],
  [
    '--shutdown-watch-termination-grace-period=-1s',
    'shutdown-watch-termination-grace-period, if provided, can not be a negative value',
  ],
  [
    '--strict-transport-security-directives=max-age',
    '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload.',
  ],
  [
    '--strict-transport-security-directives=preload,,preload',
    'empty value in strict-transport-security-directives',
  ],
  [
    '--cors-allowed-origins=example.com',
    '--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host in the origin header',
  ],
  ['--cors-allowed-origins=^(:', '--cors-allowed-origins has an invalid regular expression: '],
  ['--cors-allowed-origins=//a$,,//b$', 'empty value in --cors-allowed-origins'],
])('OPS-4: %s stops the start', (flag, message) =>
  refuses(message, '--storage-backend=memory', flag),
);
