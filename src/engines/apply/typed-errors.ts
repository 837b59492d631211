import { isObject, type JsonValue } from '../../base/json.ts';
import { compareText } from './value-order.ts';

/** One complaint about a value that does not fit its type. */
export interface TypedProblem {
  /** Path below where the walk began, as messages show it; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** A value does not fit its schema; the message is upstream's. */
export class TypedError extends Error {
  readonly problems: readonly TypedProblem[];

  constructor(problems: readonly TypedProblem[]) {
    super(showProblems(problems));
    this.name = 'TypedError';
    this.problems = problems;
  }
}

function showProblem({ path, message }: TypedProblem): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** One problem as it is, several as a list. */
function showProblems(problems: readonly TypedProblem[]): string {
  if (problems.length === 1) return showProblem(problems[0]!);
  return ['errors:', ...problems.map((problem) => `  ${showProblem(problem)}`)].join('\n');
}

/** How Go prints a JSON value with `%v`. */
export function goPlain(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPlain).join(' ')}]`;
  if (!isObject(value)) return String(value);
  const names = Object.keys(value).sort(compareText);
  return `map[${names.map((name) => `${name}:${goPlain(value[name])}`).join(' ')}]`;
}

/** How Go prints a JSON value with `%#v`. */
export function goSyntax(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isObject(value)) return String(value);
  const names = Object.keys(value).sort(compareText);
  const members = names.map((name) => `${JSON.stringify(name)}:${goSyntax(value[name])}`);
  return `map[string]interface {}{${members.join(', ')}}`;
}

/** Go's name of a JSON value's type. */
export function goTypeName(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  return Number.isInteger(Number(value)) ? 'int64' : 'float64';
}
