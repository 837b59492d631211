import { once } from 'node:events';
import tls from 'node:tls';
import { expect, test } from 'vitest';
import { temporaryFile, untilEnd } from '../support/cleanup.ts';
import { connect } from '../support/harness.ts';
import { buildPrograms, startProcess } from '../support/program.ts';

/**
 * Introduces faults into the program: a signal makes a timer throw and a promise reject, and bytes
 * of a client make an unwrapped listener throw.
 */
const saboteur = `
  process.on('SIGUSR2', () => {
    setTimeout(() => { throw new Error('sabotaged timer'); }, 1);
    Promise.reject(new Error('sabotaged promise'));
  });
  const { Server } = require('node:tls');
  const { emit } = Server.prototype;
  Server.prototype.emit = function (event, socket, ...rest) {
    const result = emit.call(this, event, socket, ...rest);
    if (event === 'secureConnection') {
      socket.on('data', (bytes) => {
        if (bytes.includes('sabotage')) throw new Error('sabotaged listener');
      });
    }
    return result;
  };
`;

const path = temporaryFile('saboteur.cjs', saboteur);
const programs = await untilEnd(buildPrograms());
const server = await untilEnd(
  startProcess(programs, {
    flags: ['--storage-backend=memory'],
    env: { NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --require=${path}` },
  }),
);

/** Sends bytes over HTTP/1.1; resolves with the answer once the server has closed. */
async function exchange(...pieces: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => {});
  for (const piece of pieces) socket.write(piece);
  await once(socket, 'close');
  return text;
}

async function get(path: string): Promise<{ status: number; text: string }> {
  const client = connect(server.url);
  try {
    return await client.calls.get(path, { token: server.token });
  } finally {
    client.close();
  }
}

async function faultsAt(where: string): Promise<number> {
  const { text } = await get('/metrics');
  const line = new RegExp(`^apiserver_contained_faults_total\\{where="${where}"\\} (\\d+)`, 'm');
  return Number(line.exec(text)?.[1] ?? 0);
}

const request = 'GET /version HTTP/1.1\r\nHost: x\r\n\r\n';
const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

test('TRUST-1: pipelined upgrades without credentials do not end the process', async () => {
  const text = await exchange(request + request + upgrade('/version') + request);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(3).fill('HTTP/1.1 401'));
  expect(server.lines().filter(({ msg }) => msg === 'a fault was contained')).toEqual([]);
  expect(server.child.exitCode).toBeNull();
});

test('TRUST-1: faults outside of requests are logged with a stack and counted', async () => {
  const before = await faultsAt('process');
  server.child.kill('SIGUSR2');
  await expect.poll(() => faultsAt('process')).toBe(before + 2);
  const stacks = server
    .lines()
    .filter(({ msg }) => msg === 'a fault was contained')
    .map(({ error }) => (error as { stack: string }).stack);
  for (const what of ['timer', 'promise']) {
    expect(stacks.some((stack) => stack.startsWith(`Error: sabotaged ${what}\n    at`))).toBe(true);
  }
  expect((await get('/readyz')).status).toBe(200);
});

test('TRUST-1: a fault in a listener ends only its own connection', async () => {
  const before = await faultsAt('process');
  const bystander = connect(server.url);
  expect((await bystander.calls.get('/version', { token: server.token })).status).toBe(200);
  await exchange(request.replace('/version', '/sabotage'));
  expect(await faultsAt('process')).toBe(before + 1);
  expect((await bystander.calls.get('/version', { token: server.token })).status).toBe(200);
  bystander.close();
});
