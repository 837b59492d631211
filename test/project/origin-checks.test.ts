import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { originChecks } from './origin-checks.ts';

const checksIn = (text: string) =>
  originChecks(ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true));

describe('checks of a kind’s origin', () => {
  test.each([
    'if (def.custom === undefined) go();',
    'if (def.custom !== undefined) go();',
    'const found = def.custom?.converter;',
    'const plain = !def.custom;',
    'const { custom } = def;',
    'const { custom: parts } = def;',
    'interface Options { readonly custom: boolean }',
    'const isCustom = lookUp(def);',
    'if (def.behavior === builtinBehavior) go();',
    "if (def.behavior.definitionName !== '') go();",
  ])('are found in %s', (text) => {
    expect(checksIn(text)).not.toEqual([]);
  });

  test.each([
    'if (def.behavior.converter === undefined) go();',
    "if (def.behavior.bodies === 'typed') go();",
    "const isPlain = encodings.custom === 'json';",
    'const def = { behavior: builtinBehavior };',
    'if (closed.has(def.behavior.definitionName)) go();',
  ])('are not found in %s', (text) => {
    expect(checksIn(text)).toEqual([]);
  });
});
