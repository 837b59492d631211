import { collectGarbage } from '@wheelhouse/machinery/testing';
import { startControlPlane } from '@wheelhouse/server';
import { expect, test } from 'vitest';
import { configMap, eventually, startTestServer, type TestServer } from '../support/harness.ts';

/** Starts, uses, and stops a server; returns it and a reference to its catalogue. */
async function stoppedServer(): Promise<{
  readonly server: TestServer;
  readonly catalogue: WeakRef<object>;
}> {
  const opened: WeakRef<object>[] = [];
  const server = await startTestServer({
    embedding: { onCatalogue: (catalogue) => opened.push(new WeakRef(catalogue)) },
  });
  const made = await server.post('/api/v1/namespaces/default/configmaps', configMap('a'));
  expect(made.status, made.text).toBe(201);
  // Parsed selectors are shared by the servers of a process.
  const listed = await server.get('/api/v1/services?fieldSelector=spec.clusterIP=None');
  expect(listed.status, listed.text).toBe(200);
  await server.stop();
  const [catalogue] = opened;
  if (catalogue === undefined) throw new Error('the server has no catalogue');
  return { server, catalogue };
}

test('the memory of a stopped server is released although its handle is kept', async () => {
  const { server, catalogue } = await stoppedServer();
  await eventually(async () => {
    collectGarbage();
    return catalogue.deref() === undefined;
  }, 'the catalogue to be collected');
  await server.stop();
});

test('the objects of a stopped control plane are released although it is kept', async () => {
  const plane = await startControlPlane();
  collectGarbage();
  const { arrayBuffers } = process.memoryUsage();
  const data = { text: 'x'.repeat(900_000) };
  for (let index = 0; index < 20; index += 1) {
    await plane.client.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `c${index}`, namespace: 'default' },
      data,
    });
  }
  await plane.stop();
  await eventually(async () => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers - arrayBuffers < 9_000_000;
  }, 'the objects to be collected');
  await expect(plane.snapshot()).rejects.toThrow('the control plane has stopped');
});
