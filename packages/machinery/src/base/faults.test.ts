import { EventEmitter } from 'node:events';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from './clock.ts';
import {
  background,
  contained,
  containedEach,
  defer,
  errorText,
  type Fault,
  listen,
  listenEach,
  observeFaults,
  returningErrors,
  whenAborted,
} from './faults.ts';

const faults: Fault[] = [];
let stop = () => {};
beforeEach(() => {
  faults.length = 0;
  stop = observeFaults((fault) => faults.push(fault));
});
afterEach(() => stop());

class Source extends EventEmitter {
  destroyed = 0;
  destroy(): void {
    this.destroyed += 1;
  }
}

const fail = () => {
  throw new Error('boom');
};

test('TRUST-1: a listener that throws ends its source and is reported', () => {
  const source = new Source();
  listen(source, { where: 'http2' }, { data: fail });
  source.emit('data');
  expect(source.destroyed).toBe(1);
  expect(faults).toEqual([{ where: 'http2', error: new Error('boom') }]);
});

test('TRUST-1: a fault on one connection does not end the listening server', () => {
  const server = new Source();
  const connection = new Source();
  const end = (source: Source) => source.destroy();
  listenEach(server, 'connection', { where: 'http1', run: (_one: Source) => fail(), end });
  server.emit('connection', connection);
  expect([server.destroyed, connection.destroyed, faults.length]).toEqual([0, 1, 1]);
});

test('TRUST-1: removed listeners are not called, and others still are', () => {
  const source = new Source();
  const listener = vi.fn();
  const remove = listen(source, { where: 'client' }, { data: fail });
  listen(source, { where: 'client' }, { data: listener });
  remove();
  source.emit('data', 1);
  expect(listener).toHaveBeenCalledWith(1);
  expect(faults).toEqual([]);
});

test('TRUST-1: a callback that ends a connection may throw', () => {
  contained({ where: 'webhook', end: fail }, fail)();
  expect(faults.map(({ where }) => where)).toEqual(['webhook', 'webhook']);
});

test('TRUST-1: rejections are contained like exceptions', async () => {
  const ended = vi.fn();
  contained({ where: 'watch', end: ended }, () => Promise.reject(new Error('later')))();
  background({ where: 'audit' }, Promise.reject(new Error('background')));
  await vi.waitFor(() => expect(faults).toHaveLength(2));
  expect(ended).toHaveBeenCalledTimes(1);
});

test('TRUST-1: a fault in a shared callback ends the request that its arguments name', () => {
  const ended = vi.fn();
  containedEach({ where: 'tls', end: ended }, (_name: string) => fail())('example.com');
  expect(ended).toHaveBeenCalledWith(new Error('boom'), 'example.com');
  expect(faults).toEqual([{ where: 'tls', error: new Error('boom') }]);
});

test('TRUST-1: a check that throws returns its error', () => {
  expect(returningErrors(fail)()).toEqual(new Error('boom'));
  expect(returningErrors(() => undefined)()).toBeUndefined();
  expect(faults).toEqual([]);
});

test('TRUST-1: an abort listener is contained and runs once', async () => {
  const controller = new AbortController();
  const run = vi.fn(fail);
  const released = vi.fn();
  whenAborted(controller.signal, { where: 'webhook' }, run);
  whenAborted(controller.signal, { where: 'webhook' }, released)();
  controller.abort();
  expect(run).toHaveBeenCalledTimes(1);
  whenAborted(controller.signal, { where: 'webhook' }, run);
  whenAborted(controller.signal, { where: 'webhook' }, released)();
  await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(2));
  expect(released).not.toHaveBeenCalled();
  expect(faults.map(({ where }) => where)).toEqual(['webhook', 'webhook']);
});

test('TRUST-1: timers and deferred tasks are contained, and a periodic one continues', async () => {
  let runs = 0;
  const timer = systemClock.every(1, () => {
    runs += 1;
    fail();
  });
  systemClock.after(1, fail);
  defer({ where: 'endpoint' }, fail);
  await vi.waitFor(() => {
    expect(runs).toBeGreaterThan(1);
    expect(faults.map(({ where }) => where)).toContain('endpoint');
  });
  timer.stop();
});

test('faults propagate if there is no observer', async () => {
  // Other files of this process may have left an observer in the shared module.
  const another: string = './faults.ts?unobserved';
  const unobserved = (await import(another)) as typeof import('./faults.ts');
  expect(unobserved.contained({ where: 'timer' }, fail)).toThrow('boom');
});

test.each<[string, unknown, string]>([
  ['an error', new TypeError('lost'), 'lost'],
  ['an error of another realm', runInNewContext("new Error('far')"), 'far'],
  ['an object with a message', { message: 'plain' }, 'plain'],
  ['a message that is not a string', { message: 3 }, '[object Object]'],
  ['a string', 'thrown', 'thrown'],
  ['nothing', undefined, 'undefined'],
])('the text of %s', (_, thrown, text) => {
  expect(errorText(thrown)).toBe(text);
});
