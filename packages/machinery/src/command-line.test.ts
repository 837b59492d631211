import { describe, expect, test } from 'vitest';
import { booleanOf, type FlagForm, parseCommandLine } from './command-line.ts';

const forms: readonly FlagForm[] = [
  { name: 'name', short: 'n' },
  { name: 'stdin', short: 'i', bare: 'true' },
  { name: 'tty', short: 't', bare: 'true' },
  { name: 'dry-run', bare: 'client' },
];

describe('a command line', () => {
  const rows: readonly (readonly [string, Record<string, readonly string[]>, string[]])[] = [
    ['', {}, []],
    ['get --name a b', { name: ['a'] }, ['get', 'b']],
    ['--name=a --name b -nc -n=d -n e', { name: ['a', 'b', 'c', 'd', 'e'] }, []],
    ['-it', { stdin: ['true'], tty: ['true'] }, []],
    ['-it=false', { stdin: ['true'], tty: ['false'] }, []],
    ['-in x', { stdin: ['true'], name: ['x'] }, []],
    ['--dry-run server', { 'dry-run': ['client'] }, ['server']],
    ['--dry-run=server -', { 'dry-run': ['server'] }, ['-']],
    ['a -- --name -x', {}, ['a', '--name', '-x']],
    ['--name --tty', { name: ['--tty'] }, []],
  ];
  test.each(rows)('%s', (line, values, words) => {
    const parsed = parseCommandLine(line.split(' ').filter(Boolean), forms);
    expect(Object.fromEntries(parsed.values)).toEqual(values);
    expect(parsed.words).toEqual(words);
  });

  test.each([
    ['--nane=a', 'unknown flag: --nane (did you mean --name?)'],
    ['--names', 'unknown flag: --names (did you mean --name?)'],
    ['--nam', /^unknown flag: --nam$/],
    ['--named-at', /^unknown flag: --named-at$/],
  ])('the error for %s names a similar flag', (line, message) => {
    expect(() => parseCommandLine([line], forms)).toThrow(message);
  });

  test('counts the words before the double dash', () => {
    expect(parseCommandLine(['a', '--', 'b'], forms).wordsBeforeDash).toBe(1);
    expect(parseCommandLine(['a', 'b'], forms).wordsBeforeDash).toBeUndefined();
  });

  test.each([
    ['--other', 'unknown flag: --other'],
    ['--constructor', 'unknown flag: --constructor'],
    ['-ixt', "unknown shorthand flag: 'x' in -xt"],
    ['--name', 'flag needs an argument: --name'],
    ['-in', "flag needs an argument: 'n' in -n"],
  ])('%s is rejected', (line, message) => {
    expect(() => parseCommandLine(line.split(' '), forms)).toThrow(message);
  });
});

test('booleans are parsed as in Go', () => {
  expect(['1', 'T', 'True', 'yes', '0', 'FALSE', ''].map(booleanOf)).toEqual([
    ...[true, true, true, undefined],
    ...[false, false, undefined],
  ]);
});
