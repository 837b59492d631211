import { readdirSync, readFileSync } from 'node:fs';

/**
 * The description files of this folder as one text: each file's lines behind `@` and its name
 * without the ending. The build replaces this module by one that holds the text compressed.
 */
export function descriptionTexts(): string {
  const folder = new URL('.', import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  return files
    .map(
      (name) => `@${name.slice(0, -'.txt'.length)}\n${readFileSync(new URL(name, folder), 'utf8')}`,
    )
    .join('\n');
}
