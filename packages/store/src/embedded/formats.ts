import { StoreError } from '../contract.ts';

/** The newest layout of a data directory that this program writes and reads. */
export const formatVersion = 2;

/** The refusal of a directory that a newer program has made. */
export function newerFormat(directory: string, format: number): StoreError {
  return new StoreError({
    code: 'unavailable',
    message:
      `data directory ${directory} has format ${format},` +
      ` this program knows formats up to ${formatVersion}: use a newer one`,
  });
}
