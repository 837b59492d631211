import {
  canonicalJson,
  evaluateJsonPath,
  goEscaped,
  goFloat,
  type JsonObject,
  type JsonPath,
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
  const wrong = columns.findIndex(({ jsonPath }) => pathReader(jsonPath) === undefined);
  const shown = wrong < 0 ? columns : columns.slice(0, wrong);
  return [nameColumn, ...shown.map((column) => columnOf(column, printAge))];
}

/** The largest number of steps and values of one path, because repeated steps multiply them. */
const valuesMax = 20_000;

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
  return (value) => unlessRefused(() => evaluateJsonPath(parsed, value, { valuesMax })[0]?.[0]);
}

const parsePath = (path: string): JsonPath => parseJsonPath(`{${path}}`);

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
  const read = pathReader(path);
  const standard = `Custom resource definition column (in JSONPath format): ${path}`;
  const description = column.description ?? '';
  return {
    name: column.name,
    type: column.type,
    format: column.format ?? '',
    description: description === '' ? standard : description,
    priority: column.priority ?? 0,
    cell: (object: JsonObject, nowMs: number) => {
      const value = read?.(object);
      if (value === null && column.type === 'string') return '<no value>';
      return value === undefined || value === null
        ? null
        : cellOf(column.type, value, (timestamp) => printAge(timestamp, nowMs));
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
  return (declared ?? []).some(({ jsonPath }) => mayRead(jsonPath, ['metadata', 'managedFields']));
}

/** Whether a path may read the member at `names`, or an object that contains it. */
export function mayRead(path: string, names: readonly string[]): boolean {
  const parsed = unlessRefused(() => parsePath(path));
  return parsed?.some((part) => typeof part !== 'string' && mayReach(part, names)) ?? false;
}

function mayReach(nodes: readonly JsonPathNode[], names: readonly string[]): boolean {
  for (const [at, name] of names.entries()) {
    const node = nodes[at];
    if (node === undefined || node.kind === 'descend' || node.kind === 'word') return true;
    if (node.kind === 'union') {
      return node.paths.some((path) =>
        mayReach([...path, ...nodes.slice(at + 1)], names.slice(at)),
      );
    }
    if (node.kind !== 'all' && !(node.kind === 'field' && node.name === name)) return false;
  }
  return true;
}
