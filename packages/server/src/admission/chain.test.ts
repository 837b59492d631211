import { createMetricRegistry, forbidden } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type AdmissionPlugin, admissionChain, createChainMeter } from './chain.ts';
import { admissionCall } from './testing.ts';

let steps: string[] = [];
const noted = (name: string, more: Partial<AdmissionPlugin> = {}): AdmissionPlugin => ({
  name,
  mutate: () => void steps.push(`mutate ${name}`),
  validate: () => void steps.push(`validate ${name}`),
  ...more,
});
function chainOf(...plugins: AdmissionPlugin[]) {
  steps = [];
  const metrics = createMetricRegistry({ release: '1.32', hidden: 'hidden' });
  return admissionChain(plugins, createChainMeter(metrics, { monotonic: () => 0 }));
}
const call = () => admissionCall({ resource: 'pods', name: 'web' });

describe('ADM-1: the chain of plugins', () => {
  test('runs the phases in order, without awaiting synchronous plugins', () => {
    const chain = chainOf(noted('a'), noted('b'));
    expect(chain.mutate(call())).toBeUndefined();
    expect(chain.validate(call())).toBeUndefined();
    expect(steps).toEqual(['mutate a', 'mutate b', 'validate a', 'validate b']);
  });

  test('awaits a plugin before it runs the next', async () => {
    const slow = noted('slow', {
      async mutate() {
        await new Promise((resolve) => setImmediate(resolve));
        steps.push('mutate slow');
      },
    });
    await chainOf(noted('a'), slow, noted('b')).mutate(call());
    expect(steps).toEqual(['mutate a', 'mutate slow', 'mutate b']);
  });

  test('stops at the first refusal, synchronous or not', async () => {
    const refusal = forbidden({ group: '', resource: 'pods' }, 'web', 'no');
    const now = noted('now', {
      mutate: () => {
        throw refusal;
      },
    });
    expect(() => chainOf(noted('a'), now, noted('b')).mutate(call())).toThrow(refusal);
    expect(steps).toEqual(['mutate a']);
    const late = noted('late', { mutate: () => Promise.reject(refusal) });
    await expect(chainOf(late, noted('b')).mutate(call())).rejects.toBe(refusal);
    expect(steps).toEqual([]);
  });

  test('skips plugins that do not concern the kind', () => {
    const ofNodes = noted('nodes', { concerns: ({ resource }) => resource === 'nodes' });
    const chain = chainOf(ofNodes, noted('a'));
    void chain.mutate(call());
    void chain.mutate(admissionCall({ resource: 'nodes', name: 'n' }));
    expect(steps).toEqual(['mutate a', 'mutate nodes', 'mutate a']);
  });

  test('ADM-2: runs mutating plugins a second time when one asks for it', async () => {
    const asking = noted('asking', {
      async mutate({ again }) {
        steps.push('mutate asking');
        if (again !== undefined) again.isRequested = true;
      },
    });
    const again = { isRequested: false, isSecond: false, kept: new Map<string, unknown>() };
    await chainOf(noted('a'), asking).mutate({ ...call(), again });
    expect(steps).toEqual(['mutate a', 'mutate asking', 'mutate a', 'mutate asking']);
    expect(again.isSecond).toBe(true);
  });
});
