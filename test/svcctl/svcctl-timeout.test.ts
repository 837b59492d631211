import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { listenLocally } from '../support/local-server.ts';
import { withServer } from '../support/with-server.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

let home: SvcctlHome;
let unresponsiveServer: Server;
let requestUrls: string[] = [];
let serverFlag = '';

const server = await withServer();

beforeAll(async () => {
  home = svcctlFor(server);
  unresponsiveServer = createServer((request, response) => {
    requestUrls.push(request.url ?? '');
    if (request.url?.startsWith('/quick') === true) response.end('quick');
  });
  serverFlag = `--server=http://127.0.0.1:${await listenLocally(unresponsiveServer)}`;
});
beforeEach(() => {
  requestUrls = [];
});
afterAll(async () => {
  home.remove();
  unresponsiveServer.closeAllConnections();
  await new Promise((resolve) => unresponsiveServer.close(resolve));
});

test.each([
  ['30', 'timeout=30s'],
  ['1500ms', 'timeout=1.5s'],
  ['90s', 'timeout=1m30s'],
  ['0', ''],
])('CLIENT-1: --request-timeout=%s is sent to the server', async (value, parameter) => {
  const line = `get --raw /quick ${serverFlag} --request-timeout=${value}`;
  expect((await home.run(line)).out).toBe('quick');
  expect((await home.run(line.replace('/quick', '/quick?a=b'))).out).toBe('quick');
  const query =
    parameter === ''
      ? ['/quick', '/quick?a=b']
      : [`/quick?${parameter}`, `/quick?a=b&${parameter}`];
  expect(requestUrls).toEqual(query);
});

test('CLIENT-1: a late answer is reported with kubectl’s message', async () => {
  expect(await home.run(`get --raw /slow ${serverFlag} --request-timeout=50ms`)).toEqual({
    code: 1,
    out: '',
    err:
      'Unable to connect to the server: context deadline exceeded ' +
      '(Client.Timeout exceeded while awaiting headers)\n',
  });
});

test.each(['x', '1x', '0.5'])('CLIENT-1: --request-timeout=%s is not a duration', async (value) => {
  const { code, err } = await home.run(`get cm --request-timeout=${value}`);
  expect(code).toBe(1);
  expect(err).toMatch(
    /^error: Invalid timeout value\. Timeout must be a single integer in seconds/,
  );
});

test.each([
  ['4', ''],
  ['5', 'Unable to decode an event from the watch stream: context deadline exceeded\n'],
])('CLIENT-1: an expired watch with --v=%s logs %j', async (verbosity, err) => {
  const line = `get cm -o name --watch-only --request-timeout=3s --v=${verbosity}`;
  expect(await home.runIn('kube-public', line)).toEqual({ code: 0, out: '', err });
});
