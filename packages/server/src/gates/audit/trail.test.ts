import {
  createMetricRegistry,
  dialectOf,
  type JsonValue,
  silentLogger,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import type { AuditEvent } from './event.ts';
import { createAuditMetrics } from './metrics.ts';
import { AuditTrail } from './trail.ts';

/** A trail at the highest level, and the events of its stages. */
function setUp(omitManagedFields: boolean) {
  const events: AuditEvent[] = [];
  const sink = {
    process(stage: readonly AuditEvent[]) {
      events.push(...stage);
      return true;
    },
    close: async () => {},
  };
  const registry = createMetricRegistry({ release: '1.34', hidden: 'hidden' });
  const trail = new AuditTrail(
    {
      sink,
      metrics: createAuditMetrics(registry),
      dialect: dialectOf('kubernetes'),
      clock: new FakeClock(),
      logger: silentLogger,
    },
    {
      auditID: 'a',
      requestURI: '/',
      verb: 'patch',
      sourceIPs: [],
      objectRef: undefined,
      startMs: 0,
      isLongRunning: false,
      decision: { level: 'RequestResponse', omitStages: new Set(), omitManagedFields },
    },
  );
  return { trail, events };
}

test.each([false, true])(
  'TRUST-2: large objects are recorded in steps; omitting managed fields: %s',
  async (omits) => {
    const { trail, events } = setUp(omits);
    const text = (key: string) => `${key}${'x'.repeat(30)}`;
    const keys = Array.from({ length: 10_000 }, (_, index) => `k${index}`);
    const data = Object.fromEntries(keys.map((key) => [key, text(key)]));
    const object = { metadata: { name: 'a', managedFields: [{ manager: 'm' }] }, data };
    const json = Buffer.from(`${JSON.stringify(object)}\n`);
    for (const work of [
      trail.setRequestPatch(object),
      trail.setRequestObject(object),
      ...(omits ? [trail.setResponseJson(json)] : []),
    ]) {
      expect([...work].length).toBeGreaterThan(10);
    }
    for (const _ of trail.setResponseJson(json)) expect(omits).toBe(true);
    await trail.complete(200);
    const recorded = omits ? { ...object, metadata: { name: 'a' } } : object;
    const { requestObject = '', responseObject = '' } = events.at(-1) as AuditEvent;
    const read = [requestObject, responseObject].map((one): JsonValue => JSON.parse(one));
    expect(read).toEqual([recorded, recorded]);
    expect(responseObject).not.toContain('\n');
  },
);
