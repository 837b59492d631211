import { describe, expect, test } from 'vitest';
import { lineDiff } from './line-diff.ts';

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join('');

describe('CLIENT-1: diffs of texts', () => {
  test('CLIENT-1: equal texts have no diff', () => {
    expect(lineDiff('a\nb\n', 'a\nb\n')).toEqual([]);
    expect(lineDiff('', '')).toEqual([]);
  });

  test('CLIENT-1: a changed line has three lines of context', () => {
    const before = numbered(1, 20);
    expect(lineDiff(before, before.replace('line 10\n', 'other\n'))).toEqual([
      '@@ -7,7 +7,7 @@',
      ...[' line 7', ' line 8', ' line 9', '-line 10', '+other'],
      ...[' line 11', ' line 12', ' line 13'],
    ]);
  });

  test('CLIENT-1: distant changes are separate hunks, near ones share one', () => {
    const before = numbered(1, 40);
    const after = before
      .replace('line 3\n', '')
      .replace('line 5\n', '')
      .replace('line 30\n', 'x\n');
    const heads = lineDiff(before, after).filter((line) => line.startsWith('@@'));
    expect(heads).toEqual(['@@ -1,8 +1,6 @@', '@@ -27,7 +25,7 @@']);
  });

  test('CLIENT-1: whole texts are added and removed', () => {
    expect(lineDiff('', 'a\nb\n')).toEqual(['@@ -0,0 +1,2 @@', '+a', '+b']);
    expect(lineDiff('a\n', '')).toEqual(['@@ -1,1 +0,0 @@', '-a']);
  });

  test('CLIENT-1: a change too long to compare is a replacement', () => {
    const lines = lineDiff(numbered(1, 3000), numbered(5001, 8000));
    expect(lines[0]).toBe('@@ -1,3000 +1,3000 @@');
    expect(lines.filter((line) => line.startsWith('-'))).toHaveLength(3000);
  });
});
