import type { JsonValue } from '../base/json.ts';
import type { FieldError } from './field-error.ts';
import { goQuoted } from './go-values.ts';
import { timeQuoted } from './times.ts';

/** What a decoder or a parser found wrong, as data; `problemText` words it. */
export type Problem =
  /** A value that its type cannot hold. `what` is the value's `goValue`, or `number 1.5`. */
  | {
      readonly code: 'misfit';
      readonly what: string;
      /** Go's name of the type. */
      readonly type: string;
      /** The field as `Kind.path`; the value itself when absent. */
      readonly field?: string | undefined;
      readonly format?: 'json' | 'cbor';
    }
  /** A text that is no number, or one that does not fit; `parser` is the function of strconv. */
  | {
      readonly code: 'number';
      readonly parser: 'Atoi' | 'ParseBool' | 'ParseInt' | 'ParseUint';
      readonly text: string;
      readonly problem: 'syntax' | 'range';
    }
  /** A text that is no base64, from the byte `at` on, where that is known. */
  | { readonly code: 'base64'; readonly at?: number }
  /** A text that is no duration; `unit` is the part of it that is none. */
  | {
      readonly code: 'duration';
      readonly text: string;
      readonly problem: 'no unit' | 'syntax' | { readonly unit: string };
    }
  | { readonly code: 'unknown field' | 'duplicate field'; readonly path: string }
  /** Keys given twice, by the lines of a YAML decoder. */
  | { readonly code: 'repeated keys'; readonly lines: readonly string[] }
  /** What strict decoding refuses, each worded. */
  | { readonly code: 'strict'; readonly problems: readonly string[] }
  /** A body whose apiVersion and kind cannot be told. */
  | { readonly code: 'no type'; readonly why: string }
  /** A body that cannot be taken for the kind of a path; `kind` and `version` are its own. */
  | {
      readonly code: 'unfit body';
      readonly kind: string;
      readonly version: string;
      readonly expected: string;
      readonly why: string;
    };

type Wording = {
  readonly [Code in Problem['code']]: (problem: Extract<Problem, { code: Code }>) => string;
};

const field = ({ code, path }: { readonly code: string; readonly path: string }) =>
  `${code} ${JSON.stringify(path)}`;

/** The reference's wording; clients match on these texts. */
const wording: Wording = {
  misfit({ format = 'json', what, type, field: name }) {
    const place = name === undefined ? 'value' : `struct field ${name}`;
    return `${format}: cannot unmarshal ${what} into Go ${place} of type ${type}`;
  },
  number({ parser, text, problem }) {
    const why = problem === 'syntax' ? 'invalid syntax' : 'value out of range';
    return `strconv.${parser}: parsing ${goQuoted(text)}: ${why}`;
  },
  base64: ({ at }) => `illegal base64 data${at === undefined ? '' : ` at input byte ${at}`}`,
  duration({ text, problem }) {
    const whole = timeQuoted(text);
    if (problem === 'no unit') return `time: missing unit in duration ${whole}`;
    if (problem === 'syntax') return `time: invalid duration ${whole}`;
    return `time: unknown unit ${timeQuoted(problem.unit)} in duration ${whole}`;
  },
  'unknown field': field,
  'duplicate field': field,
  'repeated keys': ({ lines }) =>
    `yaml: unmarshal errors:${lines.map((line) => `\n  ${line}`).join('')}`,
  strict: ({ problems }) => `strict decoding error: ${problems.join(', ')}`,
  'no type': ({ why }) => `couldn't get version/kind; json parse error: ${why}`,
  'unfit body': ({ kind, version, expected, why }) =>
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${expected}: ${why}`,
};

/** A problem in the reference's words. */
export function problemText(problem: Problem): string {
  const words = wording[problem.code] as (problem: Problem) => string;
  return words(problem);
}

/** Several errors as one text, each once and in brackets, or a single one as it is. */
export function aggregateText(messages: readonly string[]): string {
  const [first = '', ...others] = new Set(messages);
  return others.length === 0 ? first : `[${[first, ...others].join(', ')}]`;
}

/** `aggregateText` of errors of fields, with the fields. */
export function fieldErrorsText(errors: readonly FieldError[]): string {
  return aggregateText(errors.map(({ field: name, message }) => `${name}: ${message}`));
}

/** The struct that the reference reads the type of a body into, as it names it in errors. */
export const typeMetaStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/** What Go calls a JSON value that does not fit: `array`, `bool`, `number`. */
export function goValue(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'number';
  return typeof value;
}
