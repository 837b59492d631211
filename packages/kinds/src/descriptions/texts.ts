import { readdirSync, readFileSync } from 'node:fs';
import { resolvedDescriptions } from './resolve.ts';

/**
 * The output of `resolvedDescriptions` for the files of this folder. The build recognizes this
 * module by its name and replaces it with one that contains the compressed texts.
 */
export function descriptionTexts(): string {
  const folder = new URL('.', import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  const files = names.map((name) => ({
    group: name.slice(0, -'.txt'.length),
    text: readFileSync(new URL(name, folder), 'utf8'),
  }));
  return resolvedDescriptions(files);
}
