import { expect, test } from 'vitest';
import { OpenParts, Port } from './parts.ts';

test('parts are closed in reverse order, all of them, and once', async () => {
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

test('a port gives what is connected, and nothing before', () => {
  const port = new Port<string>('the part');
  expect(port.get).toThrow('the part is used before it is connected');
  port.connect('it');
  expect(port.get()).toBe('it');
});
