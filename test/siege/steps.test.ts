import { expect, test } from 'vitest';
import { buildPrograms, startProcess } from '../support/program.ts';
import { onServer } from './part.ts';
import { stepsPart } from './steps.ts';

test('TRUST-2: the longest step of a request is measured in CPU time of the main thread', async () => {
  const figures = await stepsPart.run({ seed: 1, rounds: 1, log: () => {} });
  expect(figures['a small ConfigMap']).toMatch(/^\d+\.\d ms, status 201, 1 KiB$/);
}, 120_000);

test('a failing part reports how its server ended and what it logged last', async () => {
  const programs = await buildPrograms();
  const server = await startProcess(programs, { flags: ['--storage-backend=memory'] });
  try {
    const fails = () => Promise.reject(new Error('socket hang up'));
    const about = { name: 'a request', server };
    await expect(onServer(about, fails)).rejects.toThrow(
      /^a request: Error: socket hang up\nthe server still runs; .*"msg":"ready"/s,
    );
    server.child.kill('SIGKILL');
    await expect(onServer(about, fails)).rejects.toThrow('the server has exited (SIGKILL)');
    expect(await onServer(about, async () => 1)).toBe(1);
  } finally {
    await server.remove();
    programs.remove();
  }
}, 120_000);
