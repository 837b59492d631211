import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { undocumentedExports } from './undocumented-exports.ts';

const undocumentedIn = (text: string) =>
  undocumentedExports(
    ts.createSourceFile('a.ts', text, {
      languageVersion: ts.ScriptTarget.Latest,
      jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
    }),
  );

describe('undocumented exports', () => {
  test.each([
    ['export function a() {}', ['a']],
    ['export const a = 1;', ['a']],
    ['export class A {}', ['A']],
    ['export interface A {}', ['A']],
    ['export type A = string;', ['A']],
    ['/** The file. */\n\nexport type A = string;', ['A']],
    ['// No docstring.\nexport const a = 1;', ['a']],
    ['/** One. */\nexport const a = 1;\nexport const b = 2;', ['b']],
    ['export function a(): void;\nexport function a() {}', ['a', 'a']],
  ])('are found in %j', (text, names) => {
    expect(undocumentedIn(text)).toEqual(names);
  });

  test.each([
    '/** Does it. */\nexport function a() {}',
    '/** Does it. */\nexport function a(): void;\nexport function a() {}',
    '/** The file. */\n\n/** A type. */\nexport type A = string;',
    'const a = 1;',
    "export { a } from './b.ts';",
  ])('are not found in %j', (text) => {
    expect(undocumentedIn(text)).toEqual([]);
  });
});
