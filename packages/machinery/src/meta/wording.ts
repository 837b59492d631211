import type { JsonValue } from '../base/json.ts';
import { type FieldError, showValue } from './field-error.ts';
import { goQuoted } from './go-values.ts';
import { timeQuoted } from './times.ts';

/** A problem of a decoder or parser as data; `problemText` renders it. */
export type Problem =
  /** A value of the wrong type. `what` is the value's `goValue`, or `number 1.5`. */
  | {
      readonly code: 'misfit';
      readonly what: string;
      /** Go's name of the type. */
      readonly type: string;
      /** The field as `Kind.path`; absent for the value itself. */
      readonly field?: string | undefined;
      readonly format?: 'json' | 'cbor';
    }
  /** A malformed or out-of-range number; `parser` is the function of strconv. */
  | {
      readonly code: 'number';
      readonly parser: 'Atoi' | 'ParseBool' | 'ParseFloat' | 'ParseInt' | 'ParseUint';
      readonly text: string;
      readonly problem: 'syntax' | 'range';
    }
  /** Malformed base64, from the byte `at` on. */
  | { readonly code: 'base64'; readonly at: number }
  /** A malformed duration; `unit` is the unknown unit. */
  | {
      readonly code: 'duration';
      readonly text: string;
      readonly problem: 'no unit' | 'syntax' | { readonly unit: string };
    }
  | { readonly code: 'unknown field' | 'duplicate field'; readonly path: string }
  /** Duplicate keys, as lines of a YAML decoder. */
  | { readonly code: 'repeated keys'; readonly lines: readonly string[] }
  /** Problems that strict decoding rejects, already rendered. */
  | { readonly code: 'strict'; readonly problems: readonly string[] }
  /** A body whose apiVersion and kind cannot be determined. */
  | { readonly code: 'no type'; readonly why: string }
  /** A body that does not have the kind of the path; `kind` and `version` are its own. */
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

/** kube-apiserver's wording, which clients match on. */
const wording: Wording = {
  misfit({ format = 'json', what, type, field: name }) {
    const place = name === undefined ? 'value' : `struct field ${name}`;
    return `${format}: cannot unmarshal ${what} into Go ${place} of type ${type}`;
  },
  number({ parser, text, problem }) {
    const why = problem === 'syntax' ? 'invalid syntax' : 'value out of range';
    return `strconv.${parser}: parsing ${showValue(text)}: ${why}`;
  },
  base64: ({ at }) => `illegal base64 data at input byte ${at}`,
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
    `${kind} in version ${goQuoted(version)} cannot be handled as a ${expected}: ${why}`,
};

/** Renders a problem with kube-apiserver's wording. */
export function problemText(problem: Problem): string {
  const render = wording[problem.code] as (problem: Problem) => string;
  return render(problem);
}

/** Joins distinct errors in brackets; returns a single one unchanged. */
export function aggregateText(messages: readonly string[]): string {
  const [first = '', ...others] = new Set(messages);
  return others.length === 0 ? first : `[${[first, ...others].join(', ')}]`;
}

/** Joins field errors like `aggregateText`, including the fields. */
export function fieldErrorsText(errors: readonly FieldError[]): string {
  return aggregateText(errors.map(({ field: name, message }) => `${name}: ${message}`));
}

/** The Go struct into which kube-apiserver decodes the type of a body, as its errors name it. */
export const typeMetaStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/** Returns Go's name of a JSON type in decoding errors: `array`, `bool`, `number`. */
export function goValue(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'number';
  return typeof value;
}
