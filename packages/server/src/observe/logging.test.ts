import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { createBufferedSink, createLogger } from './logging.ts';

function logger(verbosity = 0): {
  log: ReturnType<typeof createLogger>;
  lines: Record<string, unknown>[];
} {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (text: string) => lines.push(JSON.parse(text)) };
  return { log: createLogger({ verbosity, sink, clock: new FakeClock() }), lines };
}

test('a line has time, level, message, and fields', () => {
  const { log, lines } = logger();
  log.info('hello', { count: 1, msg: 'no', size: 2n });
  expect(lines).toEqual([
    { ts: '2030-01-01T00:00:00.000Z', level: 'info', msg: 'hello', count: 1, size: '2' },
  ]);
});

test('errors are logged with stack and cause, and cycles do not throw', () => {
  const { log, lines } = logger();
  log.error('bad', { error: new Error('outer', { cause: new Error('inner') }) });
  expect(lines[0]?.['error']).toMatchObject({ message: 'outer', cause: { message: 'inner' } });
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  log.warn('odd', cycle);
  expect(lines[1]).toMatchObject({ msg: 'odd' });
});

test('debug lines follow the verbosity', () => {
  const { log, lines } = logger(4);
  log.debug(4, 'seen');
  log.debug(5, 'not seen');
  expect(lines.map((line) => line['msg'])).toEqual(['seen']);
});

test('the verbosity can be changed', () => {
  const { log, lines } = logger();
  log.debug(2, 'not seen');
  log.setVerbosity?.(2);
  log.debug(2, 'seen');
  expect(log.verbosity).toBe(2);
  expect(lines.map((line) => line['msg'])).toEqual(['seen']);
});

test('errors can go to another stream', () => {
  const streams = { errors: '', others: '' };
  const log = createLogger({
    verbosity: 0,
    format: 'text',
    clock: new FakeClock(),
    sink: { write: (text) => (streams.errors += text) },
    infoSink: { write: (text) => (streams.others += text) },
  });
  log.info('one');
  log.error('two');
  log.warn('three');
  expect(streams.errors).toMatch(/^E.*"two"\n$/);
  expect(streams.others).toMatch(/"one"\n.*"three"\n$/);
});

test('a buffered sink flushes when full, when due, and on demand', () => {
  const clock = new FakeClock();
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text) };
  const buffered = createBufferedSink(sink, { bytesMax: 8, flushMs: 1000, clock });
  buffered.write('one\n');
  expect(written).toEqual([]);
  buffered.write('two\n');
  expect(written).toEqual(['one\ntwo\n']);
  buffered.write('3\n');
  clock.advance(999);
  expect(written).toHaveLength(1);
  clock.advance(1);
  expect(written.at(-1)).toBe('3\n');
  buffered.write('4\n');
  buffered.flush();
  buffered.flush();
  expect(written).toEqual(['one\ntwo\n', '3\n', '4\n']);
});
