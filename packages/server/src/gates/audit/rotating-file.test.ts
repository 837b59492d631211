import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRotatingFile, type RotationSettings } from './rotating-file.ts';

let directory: string;
const clock = new FakeClock(Date.UTC(2030, 0, 31, 10, 30));
const problems: unknown[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'wheelhouse-rotation-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
  expect(problems.splice(0)).toEqual([]);
});

const open = (change: Partial<RotationSettings> = {}) =>
  openRotatingFile({
    settings: {
      path: join(directory, 'audit.log'),
      sizeMaxBytes: 10,
      ageMaxDays: 0,
      backupsMax: 0,
      compress: false,
      ...change,
    },
    clock,
    onProblem: (error) => problems.push(error),
  });
const files = () => readdirSync(directory).sort();
const read = (name: string) => readFileSync(join(directory, name), 'utf8');

test('OPS-2: a full file is renamed after the current time, and all files are private', async () => {
  const file = open();
  file.write('12345\n');
  file.write('678\n');
  file.write('9\n');
  await file.close();
  expect(files()).toEqual(['audit-2030-01-31T10-30-00.000.log', 'audit.log']);
  expect(read('audit-2030-01-31T10-30-00.000.log')).toBe('12345\n678\n');
  expect(read('audit.log')).toBe('9\n');
  for (const name of files()) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
});

test('OPS-2: a file that somebody moved is created again when it is full', async () => {
  const file = open({ path: join(directory, 'logs', 'audit.log') });
  file.write('12345\n');
  rmSync(join(directory, 'logs'), { recursive: true });
  file.write('678901\n');
  file.write('23\n');
  await file.close();
  expect(readFileSync(join(directory, 'logs', 'audit.log'), 'utf8')).toBe('678901\n23\n');
});

test('OPS-2: an existing file counts, and rotations in the same millisecond lose nothing', async () => {
  writeFileSync(join(directory, 'audit.log'), 'before\n');
  const file = open();
  for (const line of ['first\n', 'second\n', 'third\n']) file.write(line);
  await file.close();
  expect(files()).toHaveLength(4);
  expect(files().map(read).sort()).toEqual(['before\n', 'first\n', 'second\n', 'third\n']);
});

test('OPS-2: old files are limited in number and age', async () => {
  const names = ['2030-01-01', '2030-01-20', '2030-01-29', '2030-01-30'].map(
    (day) => `audit-${day}T00-00-00.000.log`,
  );
  for (const name of [...names, 'audit-notes.log', 'other.log']) {
    writeFileSync(join(directory, name), 'x');
  }
  await open({ backupsMax: 3, ageMaxDays: 5 }).close();
  expect(files()).toEqual([names[2], names[3], 'audit-notes.log', 'audit.log', 'other.log']);
  await open({ backupsMax: 1 }).close();
  expect(files()).toEqual([names[3], 'audit-notes.log', 'audit.log', 'other.log']);
});

test('OPS-2: old files are compressed', async () => {
  const file = open({ compress: true });
  file.write('12345678\n');
  file.write('next\n');
  await file.close();
  expect(files()).toEqual(['audit-2030-01-31T10-30-00.000.log.gz', 'audit.log']);
  const packed = join(directory, 'audit-2030-01-31T10-30-00.000.log.gz');
  expect(gunzipSync(readFileSync(packed)).toString()).toBe('12345678\n');
  expect(statSync(packed).mode & 0o777).toBe(0o600);
});

test('OPS-2: the cause of a failed compression is reported', async () => {
  mkdirSync(join(directory, 'audit-2030-01-30T00-00-00.000.log'));
  await open({ compress: true }).close();
  expect(problems.splice(0)).toMatchObject([{ code: 'EISDIR' }]);
});

test('OPS-2: a line that exceeds the file size is rejected, and later lines are written', async () => {
  const file = open();
  expect(() => file.write('12345678901\n')).toThrow('write length 12 exceeds maximum file size 10');
  file.write('ok\n');
  await file.close();
  expect(read('audit.log')).toBe('ok\n');
});
