import type { LoadClient } from './client.ts';
import { type Figure, measure } from './measure.ts';

/** The target of a scenario. */
export interface Bench {
  readonly clientsOf: (count: number) => readonly LoadClient[];
  readonly protocol: string;
  /** The server's processes, for their CPU time and memory. */
  readonly pids: readonly number[];
  readonly seconds: number;
  readonly namespace: string;
  /** API prefix of a namespaced kind for writes and reads: ConfigMaps. */
  readonly path: string;
}

const payload = 'x'.repeat(1024);

/** A ConfigMap of about 1 KiB. */
export function configMap(name: string, extra: Record<string, string> = {}): Buffer {
  return Buffer.from(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, labels: { app: 'bench' } },
      data: { payload, ...extra },
    }),
  );
}

/**
 * Throws if an answer has another status than the scenario expects, because a fast error is no
 * result.
 */
function expectStatus(answer: { status: number; body: Buffer }, wanted: number): void {
  if (answer.status === wanted) return;
  const text = answer.body.toString('utf8').slice(0, 300);
  throw new Error(`status ${answer.status}, not ${wanted}: ${text}`);
}

/** Fills the namespace with objects `bench-0` … */
export async function fill(bench: Bench, count: number): Promise<void> {
  const clients = bench.clientsOf(32);
  await measure({
    ...bench,
    name: 'fill',
    clients: 32,
    seconds: 600,
    operationsMax: count,
    operation: async (n, client) => {
      const body = configMap(`bench-${n}`);
      const answer = await clients[client]!.request({ method: 'POST', path: bench.path, body });
      if (answer.status !== 409) expectStatus(answer, 201);
      return answer.bytes;
    },
  });
}

type Operation = (client: LoadClient, n: number) => Promise<number>;

function runOver(bench: Bench, name: string, operation: Operation) {
  return (clientCount: number, operationsMax?: number): Promise<Figure> => {
    const clients = bench.clientsOf(clientCount);
    return measure({
      ...bench,
      name,
      clients: clientCount,
      ...(operationsMax === undefined ? {} : { operationsMax }),
      operation: (n, client) => operation(clients[client]!, n),
    });
  };
}

/** Scenarios of single requests by name; each receives the number of clients. */
export function scenarios(bench: Bench, run: string, objects: number) {
  const at = (name: string) => `${bench.path}/${name}`;
  const ask = async (client: LoadClient, path: string) => {
    const answer = await client.request({ method: 'GET', path });
    expectStatus(answer, 200);
    return answer.bytes;
  };
  const send = async (
    client: LoadClient,
    call: { method: string; path: string; body?: Buffer; contentType?: string; wanted?: number },
  ) => {
    const { wanted, ...rest } = call;
    const answer = await client.request(rest);
    expectStatus(answer, wanted ?? 200);
    return answer.bytes;
  };
  const merge = 'application/merge-patch+json';
  const jsonPatch = 'application/json-patch+json';
  const apply = 'application/apply-patch+yaml';
  return {
    create: runOver(bench, 'create', (client, n) => {
      const body = configMap(`${run}-${n}`);
      return send(client, { method: 'POST', path: bench.path, body, wanted: 201 });
    }),
    get: runOver(bench, 'get', (client, n) => ask(client, at(`bench-${n % objects}`))),
    getCached: runOver(bench, 'get, resourceVersion=0', (client, n) =>
      ask(client, `${at(`bench-${n % objects}`)}?resourceVersion=0`),
    ),
    list: runOver(bench, `list ${objects}`, (client) => ask(client, bench.path)),
    chunkedList: runOver(bench, `list ${objects} by 500`, async (client) => {
      let bytes = 0;
      let token = '';
      do {
        const path = `${bench.path}?limit=500&continue=${encodeURIComponent(token)}`;
        const answer = await client.request({ method: 'GET', path });
        expectStatus(answer, 200);
        bytes += answer.bytes;
        token = /"continue":"([^"]*)"/.exec(answer.body.toString('latin1', 0, 600))?.[1] ?? '';
      } while (token !== '');
      return bytes;
    }),
    update: runOver(bench, 'update', (client, n) => {
      const name = `bench-${n % objects}`;
      const body = configMap(name, { turn: `${run}-${n}` });
      return send(client, { method: 'PUT', path: at(name), body });
    }),
    mergePatch: runOver(bench, 'merge patch', (client, n) => {
      const body = Buffer.from(JSON.stringify({ data: { merged: `${run}-${n}` } }));
      const path = at(`bench-${n % objects}`);
      return send(client, { method: 'PATCH', path, body, contentType: merge });
    }),
    jsonPatch: runOver(bench, 'JSON patch', (client, n) => {
      const operation = { op: 'add', path: '/data/patched', value: `${run}-${n}` };
      const body = Buffer.from(JSON.stringify([operation]));
      const path = at(`bench-${n % objects}`);
      return send(client, { method: 'PATCH', path, body, contentType: jsonPatch });
    }),
    apply: runOver(bench, 'apply', (client, n) => {
      const name = `bench-${n % objects}`;
      const data = { applied: `${run}-${n}` };
      const metadata = { name };
      const body = Buffer.from(
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }),
      );
      const path = `${at(name)}?fieldManager=bench&force=true`;
      return send(client, { method: 'PATCH', path, body, contentType: apply });
    }),
    remove: runOver(bench, 'delete', (client, n) =>
      send(client, { method: 'DELETE', path: at(`${run}-${n}`) }),
    ),
  };
}
