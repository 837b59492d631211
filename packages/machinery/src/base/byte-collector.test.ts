import { expect, test } from 'vitest';
import { ByteCollector } from './byte-collector.ts';

test('returns all bytes in order, regardless of how they were divided', () => {
  const collector = new ByteCollector();
  const pieces: Buffer[] = [];
  for (let round = 0; round < 400; round += 1) {
    const bytes = round % 7 === 0 ? 3000 : (round * 31) % 900;
    pieces.push(Buffer.alloc(bytes, round));
  }
  for (const piece of pieces) collector.add(piece);
  const whole = Buffer.concat(pieces);
  expect(collector.length).toBe(whole.length);
  expect(collector.take().equals(whole)).toBe(true);
  expect(collector.length).toBe(0);
  expect(collector.take().length).toBe(0);
});

test('a small piece does not retain its buffer', () => {
  const collector = new ByteCollector();
  const large = Buffer.alloc(16_384, 1);
  collector.add(large.subarray(5, 15));
  large.fill(2);
  expect(collector.take()).toEqual(Buffer.alloc(10, 1));
});

test('a million single bytes need few buffers', () => {
  const collector = new ByteCollector();
  const byte = Buffer.from('a');
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 1_000_000; count += 1) collector.add(byte);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8_000_000);
  expect(collector.take().length).toBe(1_000_000);
});

test('a single large piece is returned without a copy', () => {
  const collector = new ByteCollector();
  const piece = Buffer.alloc(5000);
  collector.add(piece);
  expect(collector.take()).toBe(piece);
});
