import { readdirSync, readFileSync } from 'node:fs';
import { resolvedDescriptions } from './resolve.ts';

/**
 * What `resolvedDescriptions` makes of the files of this folder. The build finds this module by its
 * name and puts one in its place that holds the texts, compressed.
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
