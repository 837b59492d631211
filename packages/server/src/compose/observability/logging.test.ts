import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { createLogger } from './logging.ts';

function logger(verbosity = 0): {
  log: ReturnType<typeof createLogger>;
  lines: Record<string, unknown>[];
} {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (text: string) => lines.push(JSON.parse(text)) };
  return { log: createLogger({ verbosity, sink, clock: new FakeClock() }), lines };
}

test('a line holds time, level, message and fields', () => {
  const { log, lines } = logger();
  log.info('hello', { count: 1, msg: 'no', size: 2n });
  expect(lines).toEqual([
    { ts: '2030-01-01T00:00:00.000Z', level: 'info', msg: 'hello', count: 1, size: '2' },
  ]);
});

test('errors keep their stack and cause; cycles do not throw', () => {
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
