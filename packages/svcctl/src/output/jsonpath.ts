import {
  evaluateJsonPath,
  goPlain,
  type JsonPath,
  JsonPathError,
  type JsonPathOptions,
  type JsonValue,
  parseJsonPath,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { compactJson, printJson } from './go-json.ts';

/** The largest number of values and steps of one evaluation. */
const valuesMax = 20_000_000;

/** Parses a JSONPath template. Throws CliError. */
export function parseTemplate(source: string): JsonPath {
  return withCliErrors(() => parseJsonPath(source));
}

/**
 * Completes the path of a column, a sort, or a condition, which may lack its braces and its first
 * dot: `metadata.name` becomes `{.metadata.name}`. Throws CliError.
 */
export function completePath(source: string): string {
  if (source === '') return '';
  const match = /^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$/.exec(source);
  if (match === null) {
    throw new CliError(
      "unexpected path string, expected a 'name1.name2' or '.name1.name2' or " +
        "'{name1.name2}' or '{.name1.name2}'",
    );
  }
  return `{.${match[1] ?? match[2] ?? ''}}`;
}

/**
 * Returns the values of each text and each action of a template. Throws CliError.
 * @param options.hidesValues whether messages may not contain values
 */
export function evaluateTemplate(
  template: JsonPath,
  value: JsonValue,
  options: Pick<JsonPathOptions, 'missing'> & { readonly hidesValues?: boolean } = {},
): readonly (readonly JsonValue[])[] {
  return withCliErrors(
    () => evaluateJsonPath(template, value, { ...options, valuesMax }),
    options.hidesValues ? 'hidden values' : 'shown values',
  );
}

/** Prints the values of a template: those of an action with spaces between them. */
export function printValues(results: readonly (readonly JsonValue[])[]): string {
  return results.map((values) => values.map(valueText).join(' ')).join('');
}

/** Prints the values of a template as JSON, a list for each text and each action. */
export function printValuesAsJson(results: readonly (readonly JsonValue[])[]): string {
  return results
    .map((values) => `${printJson([...values], { step: '    ', order: 'sorted' })}\n`)
    .join('');
}

function valueText(value: JsonValue): string {
  if (value === null) return 'null';
  return typeof value === 'object' ? compactJson(value) : goPlain(value);
}

function withCliErrors<Result>(
  run: () => Result,
  values: 'shown values' | 'hidden values' = 'shown values',
): Result {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    const { message, value } = error;
    const isHidden = values === 'hidden values' && value !== undefined;
    throw new CliError(isHidden ? message.replace(goPlain(value), () => '***') : message);
  }
}
