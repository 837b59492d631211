import { silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { beginAfter, OpenParts, Port } from './parts.ts';

test('parts close once, in reverse order, and close rejects with the first error', async () => {
  const closed: string[] = [];
  const parts = new OpenParts();
  parts.add({ close: () => void closed.push('first') });
  parts.add(undefined);
  parts.add({ close: () => Promise.reject(new Error('full disk')) });
  parts.add({ close: async () => void closed.push('last') });
  await expect(parts.close()).rejects.toThrow('full disk');
  expect(closed).toEqual(['last', 'first']);
  await parts.close();
  expect(closed).toEqual(['last', 'first']);
});

test('a port returns the connected part, and throws before it is connected', () => {
  const port = new Port<string>('the part');
  expect(port.get).toThrow('the part is used before it is connected');
  port.connect('it');
  expect(port.get()).toBe('it');
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A background part that logs its start and its close. */
function setup(pauseMs: number | undefined) {
  const clock = new FakeClock();
  const lines: string[] = [];
  let isReady: () => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const ready = new Promise<void>((resolve, reject) => {
    [isReady, fail] = [resolve, reject];
  });
  const background = beginAfter(ready, { clock, logger: silentLogger, pauseMs }, async () => {
    lines.push('begun');
    await turn();
    return { close: async () => void lines.push('closed') };
  });
  return { clock, lines, background, isReady, fail };
}

test('background work starts when the server is ready and the pause is over', async () => {
  const { clock, lines, background, isReady } = setup(50);
  clock.advance(1000);
  isReady();
  await turn();
  clock.advance(49);
  expect(lines).toEqual([]);
  clock.advance(1);
  expect(lines).toEqual(['begun']);
  await background.close();
  expect(lines).toEqual(['begun', 'closed']);
});

test('background work without a pause starts when the server is ready', async () => {
  const { lines, background, isReady } = setup(undefined);
  isReady();
  await turn();
  expect(lines).toEqual(['begun']);
  await background.close();
});

test('background work that is closed before its start never starts', async () => {
  for (const isPausing of [false, true]) {
    const { clock, lines, background, isReady } = setup(50);
    if (isPausing) isReady();
    await turn();
    await background.close();
    await background.begun;
    isReady();
    await turn();
    clock.advance(1000);
    expect(lines).toEqual([]);
  }
});

test('background work of a server that does not become ready can be closed', async () => {
  const { clock, lines, background, fail } = setup(0);
  fail(new Error('no store'));
  await turn();
  clock.advance(1000);
  await background.close();
  expect(lines).toEqual([]);
});

test('a failed start is logged and does not fail the close', async () => {
  const errors: unknown[] = [];
  const logger = {
    ...silentLogger,
    error: (_: string, fields?: object) => void errors.push(fields),
  };
  const around = { clock: new FakeClock(), logger, pauseMs: undefined };
  const broken = beginAfter(Promise.resolve(), around, () =>
    Promise.reject(new Error('no leases')),
  );
  await turn();
  await broken.close();
  expect(errors).toEqual([{ error: 'Error: no leases' }]);
});
