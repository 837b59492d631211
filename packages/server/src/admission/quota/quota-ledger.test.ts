import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { QuotaLedger, reservationMs } from './quota-ledger.ts';

const object = (uid: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { uid } });

test('ADM-1: work of a namespace runs in sequence, also after a failure', async () => {
  const ledger = new QuotaLedger(new FakeClock());
  const log: string[] = [];
  const work = (name: string, fails = false) =>
    ledger.inTurn('ns', async () => {
      log.push(`${name} begins`);
      await Promise.resolve();
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const settled = await Promise.allSettled([work('a', true), work('b'), work('c')]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('ADM-1: reservations expire where nothing reports stored objects', async () => {
  const clock = new FakeClock();
  const ledger = new QuotaLedger(clock);
  ledger.reserve('ns', 'pods', { ...object('1'), spec: { containers: [], nodeName: 'n' } });
  const [held] = [...(await ledger.reserved('ns', 'pods')).values()];
  expect(held).not.toHaveProperty('spec.nodeName');
  ledger.reserve('ns', 'pods', object('1'));
  ledger.reserve('other', 'secrets', object('2'));
  expect(ledger.count).toBe(2);
  clock.advance(2 * reservationMs);
  expect(ledger.count).toBe(0);
  expect(ledger.takeLost('ns')).toBe(true);
});

test('ADM-1: a reservation counts until it is observed or fails', async () => {
  const clock = new FakeClock();
  const ledger = new QuotaLedger(clock);
  ledger.reserve('ns', 'pods', object('1'));
  ledger.reserve('ns', 'secrets', object('2'));
  ledger.reserve('ns', 'pods', object('3'));
  expect([...(await ledger.reserved('ns', 'pods')).keys()]).toEqual(['1', '3']);
  expect([...(await ledger.reserved('other', 'pods')).keys()]).toEqual([]);
  ledger.seen('ns', '1', 1);
  ledger.seen('ns', '2', 2);
  expect([...(await ledger.reserved('ns', 'pods')).keys()]).toEqual(['3']);
  expect(ledger.takeLost('ns')).toBe(false);
  clock.advance(reservationMs + 1);
  expect([...(await ledger.reserved('ns', 'pods')).keys()]).toEqual([]);
  expect(ledger.takeLost('ns')).toBe(true);
  expect(ledger.takeLost('ns')).toBe(false);
});
