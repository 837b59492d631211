import type { JsonObject } from '@wheelhouse/machinery';
import { objectAt } from '../objects.ts';
import { valueLines, valuePairs } from './tabs.ts';

/** Maximum length of an annotation or attribute that is shown in one line. */
export const annotationLengthMax = 140;

/** Describes the labels and annotations of an object. */
export const metadataLines = (object: JsonObject): string[] => [
  ...labelLines(object),
  ...annotationLines(object),
];

/** Describes the labels of an object. */
export const labelLines = (object: JsonObject, title = 'Labels'): string[] =>
  valuePairs(title, objectAt(object, 'metadata', 'labels'));

/** Describes the annotations of an object, except the last applied configuration; shortens long ones. */
export function annotationLines(object: JsonObject, title = 'Annotations'): string[] {
  const annotations = objectAt(object, 'metadata', 'annotations');
  const texts = Object.keys(annotations)
    .filter((key) => !key.endsWith('/last-applied-configuration'))
    .sort()
    .flatMap((key) => {
      const value = String(annotations[key]).replace(/\n$/, '');
      const isShort = Buffer.byteLength(`${key}: ${value}`) <= annotationLengthMax;
      if (isShort && !value.includes('\n')) return [`${key}: ${value}`];
      const lines = value.split('\n').map((line) => shortened(line, annotationLengthMax - 2));
      return [`${key}:`, ...lines.map((line) => `  ${line}`)];
    });
  return valueLines(title, texts);
}

/** A line, or its first `lengthMax` bytes. */
export function shortened(line: string, lengthMax: number): string {
  const bytes = Buffer.from(line);
  return bytes.length > lengthMax ? `${bytes.toString('utf8', 0, lengthMax)}...` : line;
}
