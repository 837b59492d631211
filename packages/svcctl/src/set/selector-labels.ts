import { errorText, type JsonObject, parseLabelSelector, setMember } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';

/** The labels of an equality-based selector. Throws CliError for other selectors. */
export function matchedLabels(text: string): JsonObject {
  try {
    parseLabelSelector(text);
  } catch (error) {
    throw new CliError(errorText(error));
  }
  const labels: JsonObject = {};
  for (const pair of text.split(',').filter((part) => part.trim() !== '')) {
    const match = /^\s*([^=!\s]+)\s*==?\s*([^=\s]*)\s*$/.exec(pair);
    if (match === null) {
      throw new CliError(`match expression ${text} not supported on this object`);
    }
    setMember(labels, match[1] ?? '', match[2] ?? '');
  }
  return labels;
}
