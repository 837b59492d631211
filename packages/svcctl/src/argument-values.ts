import {
  cut,
  errorText,
  type JsonObject,
  jsonObject,
  objectsOf,
  parseLabelSelector,
  parseQuantity,
  setMember,
} from '@wheelhouse/machinery';
import { CliError } from './io.ts';

/**
 * Splits arguments at the first `KEY=VALUE` or `KEY-`. Throws CliError if other arguments follow
 * it.
 * @param what what the pairs change, for the message
 */
export function splitPairs(
  args: readonly string[],
  what: string,
): { readonly words: readonly string[]; readonly pairs: readonly string[] } {
  const isPair = (arg: string) => arg.indexOf('=') > 0 || (arg.endsWith('-') && arg !== '-');
  const firstPair = args.findIndex(isPair);
  if (firstPair < 0) return { words: args, pairs: [] };
  const pairs = args.slice(firstPair);
  const misplaced = pairs.find((arg) => !isPair(arg));
  if (misplaced !== undefined) {
    throw new CliError(`all resources must be specified before ${what} changes: ${misplaced}`);
  }
  return { words: args.slice(0, firstPair), pairs };
}

/** The parts of `KEY=VALUE`; the value of a key alone is empty. */
export function pairOf(text: string): readonly [key: string, value: string] {
  const [key, value = ''] = cut(text, '=');
  return [key, value];
}

/** Parses `KEY=VALUE` pairs. Throws a CliError with `errorMessage` for a malformed one. */
export function parsePairs(
  texts: readonly string[],
  errorMessage: (text: string) => string,
): JsonObject {
  const pairs: JsonObject = {};
  for (const text of texts) {
    const [key, value] = cut(text, '=');
    if (key === '' || value === undefined) throw new CliError(errorMessage(text));
    setMember(pairs, key, value);
  }
  return pairs;
}

/** Parses quantities by resource name, such as `cpu=1,memory=1Gi`. Throws CliError. */
export function parseQuantities(text: string): ReadonlyMap<string, string> {
  const amounts = new Map<string, string>();
  for (const assignment of text === '' ? [] : text.split(',')) {
    const [name = '', amount, ...more] = assignment.split('=');
    if (amount === undefined || more.length > 0) {
      throw new CliError(`Invalid argument syntax ${assignment}, expected <resource>=<value>`);
    }
    const quantity = parseQuantity(amount);
    if ('error' in quantity) throw new CliError(quantity.error);
    amounts.set(name, quantity.text);
  }
  return amounts;
}

/** Operators of selectors, and how the objects of the API spell them. */
const selectorOperators: Readonly<Record<string, string>> = {
  in: 'In',
  notin: 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Returns a selector as objects contain it. Throws CliError. */
export function labelSelectorOf(text: string): JsonObject {
  const matchLabels: JsonObject = {};
  const matchExpressions: JsonObject[] = [];
  for (const { key, operator, values } of requirementsOf(text)) {
    const [value = ''] = values;
    const name = selectorOperators[operator];
    if (operator === '=' || operator === '==') setMember(matchLabels, key, value);
    else if (name === undefined) {
      const problem =
        operator === '!='
          ? 'is not a valid label selector operator'
          : "isn't supported in label selectors";
      throw new CliError(`${JSON.stringify(operator)} ${problem}`);
    } else {
      matchExpressions.push({
        key,
        operator: name,
        ...(values.length === 0 ? {} : { values: [...values] }),
      });
    }
  }
  return {
    ...(Object.keys(matchLabels).length === 0 ? {} : { matchLabels }),
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
  };
}

function requirementsOf(text: string): ReturnType<typeof parseLabelSelector>['requirements'] {
  try {
    return parseLabelSelector(text).requirements;
  } catch (error) {
    throw new CliError(`couldn't parse the selector string "${text}": ${errorText(error)}`);
  }
}

/**
 * Returns the labels that an equality-based selector requires. Throws CliError for other selectors.
 */
export function labelsOfSelector(text: string): JsonObject {
  const { matchLabels, matchExpressions } = labelSelectorOf(text);
  if (matchExpressions === undefined) return jsonObject(matchLabels ?? {});
  const expressions = objectsOf(matchExpressions).map(({ key, operator, values }) => {
    const texts = Array.isArray(values) ? values.join(' ') : '';
    return `{${String(key)} ${String(operator)} [${texts}]}`;
  });
  throw new CliError(`match expression [${expressions.join(' ')}] not supported on this object`);
}

const pathPart = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const hostPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const imageForm = new RegExp(
  `^(?:(?:${hostPart}(?:\\.${hostPart})*|\\[[a-fA-F0-9:]+\\])(?::\\d+)?/)?` +
    `${pathPart}(?:/${pathPart})*(?::\\w[\\w.-]{0,127})?` +
    '(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$',
);
const imageLengthMax = 4096;

/** Whether `image` is a valid image reference. */
export const isImageReference = (image: string): boolean =>
  image.length <= imageLengthMax && imageForm.test(image);

/** Throws CliError for a value of `--raw` that is not a path. */
export function checkRawPath(raw: string): void {
  if (raw === '' || raw.startsWith('/') || /^[a-z][a-z\d+.-]*:/i.test(raw)) return;
  const quoted = JSON.stringify(raw);
  throw new CliError(`--raw must be a valid URL path: parse ${quoted}: invalid URI for request`);
}
