import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { followFile, type ReloadOutcome, readConfigurationFile } from './followed-files.ts';

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'wheelhouse-reload-'));
  file = join(directory, 'config.yaml');
  writeFileSync(file, 'one');
});

afterEach(() => rmSync(directory, { recursive: true }));

function follow(refused: 'retried' | 'left' = 'left') {
  const clock = new FakeClock();
  const loaded: string[] = [];
  const outcomes: ReloadOutcome['status'][] = [];
  const followed = followFile({
    file,
    text: 'one',
    clock,
    isTemporary: () => refused === 'retried',
    load: (text) => {
      if (text.startsWith('bad')) throw new Error('refused');
      loaded.push(text);
    },
    observe: ({ status }) => outcomes.push(status),
  });
  return { clock, loaded, outcomes, ...followed };
}

test('a changed text is loaded once, an unchanged one is not', async () => {
  const { look, loaded, outcomes } = follow();
  await look();
  expect(loaded).toEqual([]);
  writeFileSync(file, 'two');
  await look();
  await look();
  expect({ loaded, outcomes }).toEqual({ loaded: ['two'], outcomes: ['success'] });
  const other = join(directory, 'other');
  writeFileSync(other, 'three');
  renameSync(other, file);
  await look();
  expect(loaded).toEqual(['two', 'three']);
});

test('the file is checked every second', async () => {
  const { clock, loaded, look } = follow();
  writeFileSync(file, 'two');
  clock.advance(1000);
  await look();
  expect(loaded).toEqual(['two']);
});

test.each([
  { refused: 'left', expected: ['failure'] },
  { refused: 'retried', expected: ['failure', 'failure'] },
] as const)('a refused text is $refused a minute later', async ({ refused, expected }) => {
  const { clock, look, loaded, outcomes } = follow(refused);
  writeFileSync(file, 'bad');
  await look();
  await look();
  expect(outcomes).toEqual(['failure']);
  clock.advance(61_000);
  await look();
  expect(outcomes).toEqual(expected);
  expect(loaded).toEqual([]);
  writeFileSync(file, 'good');
  await look();
  expect(loaded).toEqual(['good']);
});

test('a file that disappears is reported, and reloaded when it returns', async () => {
  const { look, loaded, outcomes } = follow();
  await look();
  rmSync(file);
  await look();
  await look();
  expect(outcomes).toEqual(['failure']);
  writeFileSync(file, 'two');
  await look();
  expect(loaded).toEqual(['two']);
});

test('nothing is loaded after stop', async () => {
  const { look, stop, loaded } = follow();
  writeFileSync(file, 'two');
  stop();
  await look();
  expect(loaded).toEqual([]);
});

test('a folder or an oversized file is not read', () => {
  expect(() => readConfigurationFile(directory)).toThrow(/not a regular file|EISDIR/);
  writeFileSync(file, Buffer.alloc(3 * 1024 * 1024 + 1));
  expect(() => readConfigurationFile(file)).toThrow('larger than');
  expect(() => readConfigurationFile(join(directory, 'absent'))).toThrow('ENOENT');
});
