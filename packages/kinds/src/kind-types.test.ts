import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as definitions from './apiextensions/crd-schema.ts';
import * as facts from './facts.ts';
import * as life from './rules/life.ts';
import * as schemas from './schema-of.ts';

const folder = new URL('gen/types/', import.meta.url);

test('the types of kinds are up to date with their schemas: `npm run kind-types`', async () => {
  const script = new URL('../../../scripts/facts/types.mjs', import.meta.url).href;
  const { typeFiles } = (await import(script)) as {
    typeFiles(kinds: object): ReadonlyMap<string, string>;
  };
  const made = typeFiles({ ...definitions, ...facts, ...life, ...schemas });
  const names = readdirSync(folder).flatMap((group) =>
    readdirSync(new URL(group, folder)).map((name) => `${group}/${name}`),
  );
  expect(names.sort()).toEqual([...made.keys()].sort());
  for (const [name, text] of made) {
    expect(readFileSync(new URL(name, folder), 'utf8'), name).toBe(text);
  }
});
