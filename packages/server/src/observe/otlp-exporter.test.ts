import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { startGrpcServer } from '../../../../test/support/grpc-server.ts';
import { OtlpExporter } from './otlp-exporter.ts';

test('OPS-1: a silent collector delays shutdown by at most a second', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-otlp-'));
  const socketPath = join(directory, 'otel.sock');
  let called = () => {};
  const call = new Promise<void>((resolve) => {
    called = resolve;
  });
  const collector = await startGrpcServer(socketPath, () => {
    called();
    return new Promise<never>(() => {});
  });
  const clock = new FakeClock();
  const options = { clock, logger: silentLogger, resource: {} };
  const exporter = new OtlpExporter({ socketPath }, options);
  const none = Buffer.alloc(0);
  exporter.add({
    traceId: none,
    spanId: none,
    parentSpanId: none,
    name: 'one',
    kind: 'internal',
    startNs: 0n,
    endNs: 1n,
    attributes: {},
    link: undefined,
    error: undefined,
  });
  clock.advance(5000);
  await call;
  let isClosed = false;
  const closing = exporter.close().then(() => {
    isClosed = true;
  });
  clock.advance(999);
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  clock.advance(1);
  await closing;
  expect(isClosed).toBe(true);
  await expect.poll(() => collector.connections).toBe(0);
  await collector.stop();
  rmSync(directory, { recursive: true, force: true });
});
