import {
  canonicalJson,
  evaluateJsonPath,
  goEscaped,
  goFloat,
  type JsonObject,
  type JsonPath,
  type JsonPathBudget,
  JsonPathError,
  type JsonPathNode,
  type JsonValue,
  parseGoTime,
  parseJsonPath,
} from '@wheelhouse/machinery';
import type { ColumnDef } from '../resource-def.ts';
import type { CrdColumn } from './definition.ts';

/** Formats the time from a timestamp to now as tables print it (`5m3s`). */
export type PrintAge = (timestamp: string, nowMs: number) => string;

const ageColumn: CrdColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created.',
  jsonPath: '.metadata.creationTimestamp',
};

const nameColumn: ColumnDef = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
  cell: (object) => {
    const { metadata } = object as { metadata?: { name?: string } };
    return metadata?.name ?? '';
  },
};

/**
 * The columns of a version (CODEC-5): the name, followed by the declared columns, or by the age if
 * there are none. As in kube-apiserver, an invalid path ends the list.
 */
export function columnsOf(
  declared: readonly CrdColumn[] | undefined,
  printAge: PrintAge,
): readonly ColumnDef[] {
  const columns = declared === undefined || declared.length === 0 ? [ageColumn] : declared;
  const wrong = columns.findIndex((column) => parsedPath(column) === undefined);
  const shown = wrong < 0 ? columns : columns.slice(0, wrong);
  return [nameColumn, ...shown.map((column) => columnOf(column, printAge))];
}

/** The largest number of steps and values of one path, because repeated steps multiply them. */
const pathValuesMax = 20_000;
const unlimited = (): JsonPathBudget => ({ left: Number.POSITIVE_INFINITY });
/** This many characters of a cell count as one value. */
const charactersPerValue = 4;
/** Maximum length of a path, which is parsed in one piece. */
const pathLengthMax = 16_384;

const parsedPaths = new WeakMap<CrdColumn, JsonPath | 'invalid'>();

/** The path of a column; undefined if it is invalid or too long. Parses it once. */
function parsedPath(column: CrdColumn): JsonPath | undefined {
  let parsed = parsedPaths.get(column);
  if (parsed === undefined) {
    parsed = unlessRefused(() => parsePath(column.jsonPath)) ?? 'invalid';
    parsedPaths.set(column, parsed);
  }
  return parsed === 'invalid' ? undefined : parsed;
}

/** Parses the paths of columns in steps, ahead of `columnsOf` and `showsManagedFields` (TRUST-2). */
export function* parseColumns(columns: readonly CrdColumn[] | undefined): Generator<void, void> {
  for (const column of columns ?? []) {
    parsedPath(column);
    yield;
  }
}

/**
 * Returns a reader of the first value at a JSONPath of a printer column or selectable field
 * (`.spec.a`, `.items[-1:]`, `.conditions[?(@.type=="Ready")].status`, `..name`); undefined for an
 * invalid path. The reader returns undefined if there is no value.
 */
export function pathReader(
  path: string,
): ((value: JsonValue) => JsonValue | undefined) | undefined {
  const parsed = unlessRefused(() => parsePath(path));
  if (parsed === undefined) return undefined;
  return (value) => firstValue(parsed, value);
}

const firstValue = (
  path: JsonPath,
  value: JsonValue,
  budget?: JsonPathBudget,
): JsonValue | undefined =>
  unlessRefused(() => evaluateJsonPath(path, value, { valuesMax: pathValuesMax, budget })[0]?.[0]);

function parsePath(path: string): JsonPath {
  if (path.length > pathLengthMax) throw new JsonPathError('the path is too long');
  return parseJsonPath(`{${path}}`);
}

function unlessRefused<Result>(run: () => Result): Result | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof JsonPathError) return undefined;
    throw error;
  }
}

function columnOf(column: CrdColumn, printAge: PrintAge): ColumnDef {
  const path = column.jsonPath;
  const parsed = parsedPath(column) ?? [];
  const standard = `Custom resource definition column (in JSONPath format): ${path}`;
  const description = column.description ?? '';
  return {
    name: column.name,
    type: column.type,
    format: column.format ?? '',
    description: description === '' ? standard : description,
    priority: column.priority ?? 0,
    cell: (object: JsonObject, nowMs: number, budget = unlimited()) => {
      if (budget.left <= 0) return null;
      const value = firstValue(parsed, object, budget);
      if (value === null && column.type === 'string') return '<no value>';
      if (value === undefined || value === null) return null;
      const cell = cellOf(column.type, value, (timestamp) => printAge(timestamp, nowMs));
      if (typeof cell === 'string') budget.left -= Math.ceil(cell.length / charactersPerValue);
      return cell;
    },
  };
}

/** Prints a value as Go does: the members of objects are sorted. */
function textOf(value: JsonValue): string {
  if (typeof value === 'object') return goEscaped(canonicalJson(value));
  const isFloat = typeof value === 'number' && !Number.isSafeInteger(value);
  return isFloat ? goFloat(value) : String(value);
}

/** The spellings of Go's zero time. */
const unknownTimes = new Set(['', 'null', '0001-01-01T00:00:00Z']);

function cellOf(
  type: string,
  value: JsonValue,
  printAge: (timestamp: string) => string,
): JsonValue {
  switch (type) {
    case 'string':
      return textOf(value);
    case 'integer':
      if (typeof value === 'bigint') return value;
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      if (unknownTimes.has(value)) return '<unknown>';
      return 'error' in parseGoTime(value) ? '<invalid>' : printAge(value);
    default:
      return null;
  }
}

/** Whether a column may show managed fields. */
export function showsManagedFields(declared: readonly CrdColumn[] | undefined): boolean {
  const names = ['metadata', 'managedFields'];
  return (declared ?? []).some((column) => {
    const parsed = parsedPath(column) ?? [];
    return parsed.some((part) => typeof part !== 'string' && mayReach(part, names));
  });
}

/** Whether steps may read the member at `names`, or an object that contains it. */
function mayReach(nodes: readonly JsonPathNode[], names: readonly string[]): boolean {
  for (const [at, name] of names.entries()) {
    const node = nodes[at];
    if (node === undefined || node.kind === 'descend' || node.kind === 'word') return true;
    // The steps after a union would have to be followed once for each of its paths.
    if (node.kind === 'union') return node.paths.some((path) => mayReach(path, names.slice(at)));
    if (node.kind !== 'all' && !(node.kind === 'field' && node.name === name)) return false;
  }
  return true;
}
