import { type JsonObject, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import { startFlowConfiguration, WriteBudget } from './flow-control.ts';
import { createObjectWriter, listEntries, type ObjectWriter } from './tools.ts';

const group = 'flowcontrol.apiserver.k8s.io';

let server: TestApi;
let configuration: { close(): Promise<void> } | undefined;

beforeEach(async () => {
  server = await openTestApi({ dialect: 'kubernetes' });
});
afterEach(async () => {
  await configuration?.close();
  configuration = undefined;
  await server.close();
});

async function start(writer: ObjectWriter): Promise<void> {
  const { api, clock } = server;
  configuration = await startFlowConfiguration({
    defs: {
      levels: server.def('prioritylevelconfigurations', group),
      schemas: server.def('flowschemas', group),
    },
    configure: () => {},
    defaultLevels: new Set(),
    caches: api.registry.caches,
    writer,
    clock,
    logger: silentLogger,
  });
}

const createSchema = () =>
  server.create(
    {
      apiVersion: `${group}/v1`,
      kind: 'FlowSchema',
      metadata: { name: 'orphan' },
      spec: { priorityLevelConfiguration: { name: 'absent' }, matchingPrecedence: 1000 },
    },
    { resource: 'flowschemas', group },
  );

async function storedSchema() {
  const def = server.def('flowschemas', group);
  const [entry] = await listEntries(server.api.registry.caches, { def, namespace: '' });
  return entry === undefined ? undefined : decodeEntry(entry);
}

test('OPS-3: a condition that another server has written keeps its time', async () => {
  const own = createObjectWriter({
    registry: server.api.registry,
    controller: 'flow-configuration',
  });
  let written: JsonObject | undefined;
  const ended = vi.fn();
  await start({
    ...own,
    async apply(at, body) {
      await own.apply(at, (current) => {
        written = typeof body === 'function' ? body(current) : body;
        return written;
      });
      server.clock.advance(5000);
      await own.apply(at, body);
      ended();
    },
  });
  await createSchema();
  await vi.waitFor(() => expect(ended).toHaveBeenCalled());
  expect(written).toMatchObject({
    status: { conditions: [{ type: 'Dangling', status: 'True', reason: 'NotFound' }] },
  });
  expect(await storedSchema()).toMatchObject({ status: written?.['status'] });
});

test('OPS-3: an object is written at most six times a minute, independently of others', () => {
  const clock = new FakeClock();
  const budget = new WriteBudget(clock);
  for (let write = 0; write < 6; write += 1) {
    expect(budget.take('a')).toBeUndefined();
    clock.advance(1000);
  }
  expect(budget.take('a')).toBe(54_000);
  expect(budget.take('b')).toBeUndefined();
  clock.advance(54_000);
  expect(budget.take('a')).toBeUndefined();
  expect(budget.take('a')).toBe(1000);
  budget.forget('a');
  expect(budget.take('a')).toBeUndefined();
});
