import type { JsonObject } from '@wheelhouse/machinery';
import { objectAt } from '../objects.ts';
import { valueLines, valuePairs } from './pod-template.ts';

/** Maximum length of an annotation that is shown in one line. */
const annotationLengthMax = 140;

/** Describes the labels and annotations of an object. */
export const metadataLines = (object: JsonObject): string[] => [
  ...valuePairs('Labels', objectAt(object, 'metadata', 'labels'), '='),
  ...annotationLines(objectAt(object, 'metadata', 'annotations')),
];

/** Describes annotations except the last applied configuration; shortens long ones. */
function annotationLines(annotations: JsonObject): string[] {
  const values = Object.keys(annotations)
    .filter((key) => !key.endsWith('/last-applied-configuration'))
    .sort()
    .flatMap((key) => {
      const value = String(annotations[key]).replace(/\n$/, '');
      const isShort = value.length + key.length + 2 <= annotationLengthMax;
      if (isShort && !value.includes('\n')) return [`${key}: ${value}`];
      return [`${key}:`, ...value.split('\n').map((line) => `  ${shortened(line)}`)];
    });
  return valueLines('Annotations', values);
}

function shortened(line: string): string {
  const lengthMax = annotationLengthMax - 2;
  return line.length > lengthMax ? `${line.slice(0, lengthMax)}...` : line;
}
