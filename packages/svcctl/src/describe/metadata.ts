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
export const labelLines = (object: JsonObject): string[] =>
  valuePairs('Labels', objectAt(object, 'metadata', 'labels'), '=');

/** Describes the annotations of an object. */
export const annotationLines = (object: JsonObject): string[] =>
  valueLines('Annotations', annotationTexts(objectAt(object, 'metadata', 'annotations')));

/** The lines of all annotations except the last applied configuration; shortens long ones. */
export function annotationTexts(annotations: JsonObject): string[] {
  return Object.keys(annotations)
    .filter((key) => !key.endsWith('/last-applied-configuration'))
    .sort()
    .flatMap((key) => {
      const value = String(annotations[key]).replace(/\n$/, '');
      const isShort = value.length + key.length + 2 <= annotationLengthMax;
      if (isShort && !value.includes('\n')) return [`${key}: ${value}`];
      return [`${key}:`, ...value.split('\n').map((line) => `  ${shortened(line)}`)];
    });
}

/** Labels, annotations, or parameters in one text, complete: `a=b,c=d`. */
export function pairsText(map: JsonObject): string {
  const pairs = Object.keys(map)
    .sort()
    .map((key) => `${key}=${String(map[key])}`);
  return pairs.length === 0 ? '<none>' : pairs.join(',');
}

function shortened(line: string): string {
  const lengthMax = annotationLengthMax - 2;
  return line.length > lengthMax ? `${line.slice(0, lengthMax)}...` : line;
}
