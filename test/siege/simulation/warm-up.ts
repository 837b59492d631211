import { createMemoryStore } from '../../../src/storage/memory/memory-store.ts';
import { SimulatedServer } from './simulated-server.ts';
import { World } from './world.ts';

const map = '/api/v1/namespaces/a/configmaps/m';
const body = (value: unknown) => Buffer.from(JSON.stringify(value));
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' } };

/** Requests of every sort that histories send, failures among them. */
const requests = [
  { method: 'POST', url: '/api/v1/namespaces', body: body({ metadata: { name: 'a' } }) },
  { method: 'POST', url: '/api/v1/namespaces/a/configmaps', body: body(configMap) },
  { method: 'POST', url: '/api/v1/namespaces/a/configmaps', body: body(configMap) },
  { method: 'GET', url: map },
  { method: 'GET', url: '/api/v1/configmaps' },
  { method: 'PUT', url: map, body: body({ ...configMap, data: { a: '1' } }) },
  {
    method: 'PATCH',
    url: map,
    body: body({ data: { b: '1' } }),
    type: 'application/merge-patch+json',
  },
  {
    method: 'PATCH',
    url: `${map}?fieldManager=one`,
    body: body({ ...configMap, data: { b: '2' } }),
    type: 'application/apply-patch+yaml',
  },
  {
    method: 'PATCH',
    url: `${map}?fieldManager=one&force=true`,
    body: body({ ...configMap, data: { b: '2' } }),
    type: 'application/apply-patch+yaml',
  },
  { method: 'DELETE', url: map, body: body({ propagationPolicy: 'Foreground' }) },
  { method: 'DELETE', url: map },
  { method: 'DELETE', url: '/api/v1/namespaces/a' },
];

let warm: Promise<void> | undefined;

/**
 * Loads what the server loads on first use, which takes real time: no history may depend on it.
 * Runs once a process.
 */
export function warmUp(): Promise<void> {
  warm ??= load();
  return warm;
}

async function load(): Promise<void> {
  const world = new World(0);
  world.isStormy = false;
  const server = await SimulatedServer.start(world, createMemoryStore(), 'disk');
  const realTurn = () => new Promise<void>((resolve) => setTimeout(resolve, 1));
  const passing = async (isOver: () => boolean) => {
    while (!isOver()) {
      while (world.deliver()) await realTurn();
      await realTurn();
    }
  };
  const watched: string[] = [];
  const watch = server.watch('/api/v1/configmaps?watch=true', {
    status: () => {},
    frames: (text) => watched.push(text) > 0,
    end: () => {},
  });
  for (const request of requests) {
    let isAnswered = false;
    void server.request({ type: 'application/json', ...request }).then(() => {
      isAnswered = true;
    });
    await passing(() => isAnswered);
  }
  await passing(() => watched.length > 0);
  for (let turn = 0; turn < 50; turn++) {
    world.clock.advance(1000);
    world.deliver();
    await realTurn();
  }
  watch.close();
  await server.crash();
}
