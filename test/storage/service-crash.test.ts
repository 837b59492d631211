import { join } from 'node:path';
import type { Service } from '@wheelhouse/kinds/types/core/v1';
import { expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { connect, type ResponseOf } from '../support/harness.ts';
import { buildPrograms, type ServerProcess, startProcess } from '../support/program.ts';

/** A range of 62 addresses. */
const flags = ['--service-cluster-ip-range=10.0.0.0/26', '--controllers=*,-default-service'];
const available = 62;

const programs = await untilEnd(buildPrograms());
const directory = temporaryFolder();

const path = '/api/v1/namespaces/default/services';
const service = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ port: 80 }] },
});

const start = () => startProcess(programs, { dataDir: join(directory, 'data'), flags });

/** The names of addresses in received answers, until the server is killed during writes. */
async function writeAndKill(server: ServerProcess): Promise<Map<string, string>> {
  const { calls, close } = connect(server.url);
  const { token } = server;
  const allocated = new Map<string, string>();
  const writer = async (id: number) => {
    for (let count = 0; count < available; count += 1) {
      const name = `w${id}-${count}`;
      const answer = await calls.post<ResponseOf<Service>>(path, service(name), { token });
      if (answer.status !== 201) return;
      allocated.set(name, answer.body.spec.clusterIP);
      if (count % 3 === 2) {
        const removed = await calls.remove(`${path}/${name}`, undefined, { token });
        if (removed.status === 200) allocated.delete(name);
      }
      if (allocated.size >= 20) server.child.kill('SIGKILL');
    }
  };
  await Promise.allSettled(Array.from({ length: 6 }, (_, id) => writer(id)));
  await server.remove();
  close();
  return allocated;
}

test('a server killed during writes loses no address and allocates none twice', async () => {
  const allocated = await writeAndKill(await start());
  expect(allocated.size).toBeGreaterThanOrEqual(20);
  const server = await start();
  const { calls, close } = connect(server.url);
  const { token } = server;
  try {
    const stored = async () => {
      const { items } = (await calls.get<{ items: ResponseOf<Service>[] }>(path, { token })).body;
      return new Map<string, string>(
        items.map((item) => [item.metadata.name, item.spec.clusterIP]),
      );
    };
    const kept = await stored();
    // An unanswered deletion may have happened.
    for (const [name, ip] of allocated) expect(kept.get(name) ?? ip).toBe(ip);
    expect(new Set(kept.values()).size).toBe(kept.size);
    for (let count = kept.size; count < available; count += 1) {
      const answer = await calls.post(path, service(`again-${count}`), { token });
      expect(answer.status, answer.text).toBe(201);
    }
    const full = await calls.post(path, service('too-many'), { token });
    expect(full.body.message).toContain('range is full');
    expect(new Set((await stored()).values()).size).toBe(available);
  } finally {
    close();
    await server.remove();
  }
}, 60_000);
