import { silentLogger } from '@wheelhouse/machinery';
import { collectGarbage, FakeClock } from '@wheelhouse/machinery/testing';
import { FetchError, fetchText, Provider, readToken } from '@wheelhouse/server/testing';
import { beforeEach, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { countingClock } from '../support/counting-clock.ts';
import { quickClock } from '../support/quick-clock.ts';
import { signingPair, startProvider } from './oidc-provider.ts';

const source = await untilEnd(startProvider());
const elsewhere = await untilEnd(startProvider({ certificateOf: source }));
const clock = quickClock(10);
beforeEach(() => {
  source.handler = undefined;
  elsewhere.handler = undefined;
});

const fetched = (path: string, bearer?: string) =>
  fetchText(`${source.url}${path}`, { authorities: source.caPem, clock }, bearer);

test('AUTHN-7: a document is fetched with its cache lifetime', async () => {
  source.handler = (request, response) => {
    response.setHeader('cache-control', 'public, max-age=120, must-revalidate');
    response.end(`for ${request.headers.authorization}`);
    return true;
  };
  const answer = { status: 200, text: 'for Bearer secret', maxAgeMs: 120_000 };
  expect(await fetched('/', 'secret')).toEqual(answer);
});

test('AUTHN-7: a redirect is followed without the credential', async () => {
  const seen: (string | undefined)[] = [];
  const targets: Record<string, string> = { '/a': '/b', '/b': `${elsewhere.url}/c` };
  source.handler = (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(302, { location: targets[request.url ?? ''] }).end();
    return true;
  };
  elsewhere.handler = (request, response) => {
    seen.push(request.headers.authorization);
    response.end('there');
    return true;
  };
  expect((await fetched('/a', 'secret')).text).toBe('there');
  expect(seen).toEqual(['Bearer secret', 'Bearer secret', undefined]);
});

test.each(['http://127.0.0.1/', 'file:///etc/passwd', '/again', '//', 'https://'])(
  'AUTHN-7: a redirect to %s is refused',
  async (location) => {
    source.handler = (_, response) => {
      response.writeHead(307, { location }).end();
      return true;
    };
    const before = source.requests.length;
    await expect(fetched('/')).rejects.toThrow(FetchError);
    expect(source.requests.length - before).toBeLessThanOrEqual(6);
  },
);

test('AUTHN-7: an endless answer is cut off by size or by time', async () => {
  let open = true;
  source.handler = (_, response) => {
    const more = () => {
      if (open) response.write('x'.repeat(64 * 1024), more);
    };
    more();
    return true;
  };
  await expect(fetched('/')).rejects.toThrow('the answer is larger than 1048576 bytes');
  open = false;
  source.handler = (_, response) => {
    response.write('{');
    return true;
  };
  await expect(fetched('/')).rejects.toThrow('no complete answer within 10000 ms');
  source.handler = () => true;
  await expect(fetched('/')).rejects.toThrow('no complete answer within 10000 ms');
});

test('TRUST-4: an answer in single bytes takes as much memory as its bytes', async () => {
  const count = 200_000;
  let end = () => {};
  const arrived = new Promise<void>((resolve) => {
    source.handler = ({ socket }) => {
      const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
      end = () => void socket.end('0\r\n\r\n');
      socket.write(head + '1\r\n \r\n'.repeat(count), () => resolve());
      return true;
    };
  });
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const access = { authorities: source.caPem, clock: new FakeClock() };
  const fetching = fetchText(`${source.url}/`, access);
  await arrived;
  // The client, in this process, reads what has arrived in each turn.
  for (let turns = 0; turns < 500; turns += 1) await new Promise(setImmediate);
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
  end();
  expect((await fetching).text).toHaveLength(count);
});

test('AUTHN-7: an interrupted answer is refused', async () => {
  source.handler = (_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
    return true;
  };
  await expect(fetched('/')).rejects.toThrow(FetchError);
});

test('AUTHN-7: keys are fetched for the first token, not at startup', async () => {
  const access = { authorities: source.caPem, clock };
  const options = { issuer: source.url, discoveryUrl: undefined, access, logger: silentLogger };
  const asked: string[] = [];
  source.handler = (request, response) => {
    asked.push(request.url ?? '');
    if (request.url?.includes('well-known')) return false;
    response.writeHead(503).end();
    return true;
  };
  const provider = new Provider(options);
  expect(await provider.readyWithin(100_000)).toBe(true);
  expect(asked).toEqual(['/.well-known/openid-configuration']);
  source.handler = undefined;
  const token = readToken(await source.token({ sub: 'x' }));
  await provider.verify(token!);
  provider.stop();
});

test('TRUST-2: a large discovery document is decoded in steps', async () => {
  const counting = countingClock();
  const access = { authorities: source.caPem, clock: counting };
  const options = { issuer: source.url, discoveryUrl: undefined, access, logger: silentLogger };
  const discover = async () => {
    const provider = new Provider(options);
    expect(await provider.readyWithin(60_000)).toBe(true);
    provider.stop();
  };
  const usual = await counting.readingsOf(discover);
  const more = Array.from({ length: 20_000 }, () => [1]);
  source.handler = (_, response) => {
    response.end(JSON.stringify({ issuer: source.url, jwks_uri: `${source.url}/keys`, more }));
    return true;
  };
  expect(await counting.readingsOf(discover)).toBeGreaterThan(usual + 10);
});

test('AUTHN-7: only a bounded number of tokens wait for a silent provider', async () => {
  const access = { authorities: source.caPem, clock };
  const options = { issuer: source.url, discoveryUrl: undefined, access, logger: silentLogger };
  const provider = new Provider(options);
  expect(await provider.readyWithin(100_000)).toBe(true);
  quickTo(10_000);
  source.handler = () => true;
  const by = await signingPair('ES256', 'unknown');
  const token = readToken(await source.token({ sub: 'x' }, { by }));
  const all = Array.from({ length: 130 }, () =>
    provider.verify(token!).catch((error: Error) => error.message),
  );
  const outcomes = await Promise.all(all);
  const many = outcomes.filter((text) => text === 'oidc: too many tokens wait for keys');
  const waited = outcomes.filter((text) => String(text).endsWith('failed to verify signature'));
  expect({ many: many.length, waited: waited.length }).toEqual({ many: 30, waited: 100 });
  provider.stop();
});

/** Advances the clock, so that keys may be fetched again. */
function quickTo(ms: number): void {
  (clock as ReturnType<typeof quickClock>).skip(ms);
}
