import {
  errorText,
  type JsonObject,
  parseLabelSelector,
  parseQuantity,
  setMember,
} from '@wheelhouse/machinery';
import { CliError } from './io.ts';

/** Splits arguments before the first change: `KEY=VALUE` or `KEY-`. Throws CliError. */
export function splitPairs(
  args: readonly string[],
  what: string,
): { readonly words: readonly string[]; readonly pairs: readonly string[] } {
  const isPair = (arg: string) => arg.indexOf('=') > 0 || (arg.endsWith('-') && arg !== '-');
  const from = args.findIndex(isPair);
  if (from < 0) return { words: args, pairs: [] };
  const pairs = args.slice(from);
  const misplaced = pairs.find((arg) => !isPair(arg));
  if (misplaced !== undefined) {
    throw new CliError(`all resources must be specified before ${what} changes: ${misplaced}`);
  }
  return { words: args.slice(0, from), pairs };
}

/** Parses `KEY=VALUE` pairs. Throws CliError. */
export function pairsOf(texts: readonly string[], fault: (text: string) => string): JsonObject {
  const pairs: JsonObject = {};
  for (const text of texts) {
    const equals = text.indexOf('=');
    if (equals <= 0) throw new CliError(fault(text));
    setMember(pairs, text.slice(0, equals), text.slice(equals + 1));
  }
  return pairs;
}

/** Parses `cpu=1,memory=1Gi`. Throws CliError. */
export function quantitiesOf(text: string): ReadonlyMap<string, string> {
  const amounts = new Map<string, string>();
  for (const statement of text === '' ? [] : text.split(',')) {
    const [name = '', amount, ...more] = statement.split('=');
    if (amount === undefined || more.length > 0) {
      throw new CliError(`Invalid argument syntax ${statement}, expected <resource>=<value>`);
    }
    const quantity = parseQuantity(amount);
    if ('error' in quantity) throw new CliError(quantity.error);
    amounts.set(name, quantity.text);
  }
  return amounts;
}

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

const pathPart = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const hostPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const imageForm = new RegExp(
  `^(?:(?:${hostPart}(?:\\.${hostPart})*|\\[[a-fA-F0-9:]+\\])(?::\\d+)?/)?` +
    `${pathPart}(?:/${pathPart})*(?::\\w[\\w.-]{0,127})?` +
    '(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$',
);
const imageLengthMax = 4096;

/** Whether a text is a valid image reference. */
export const isImageName = (image: string): boolean =>
  image.length <= imageLengthMax && imageForm.test(image);
