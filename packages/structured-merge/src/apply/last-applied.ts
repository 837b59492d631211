import {
  type ApiObject,
  compareText,
  goEscaped,
  isObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '@wheelhouse/machinery';
import { compare } from './compare.ts';
import { difference, type FieldSet } from './field-set.ts';
import { toFieldSet } from './to-field-set.ts';
import { TypedError } from './typed-errors.ts';
import { validateTyped } from './validate-typed.ts';
import type { ValueType } from './value-type.ts';

/** Most bytes all annotations of an object may have together. */
const annotationsBytesMax = 256 * 1024;

/** Where client-side applies are recorded, by whom. */
export interface LastApplied {
  readonly annotation: string;
  /** The one manager whose client-side applies turn into server-side ones without conflicts. */
  readonly manager: string;
}

interface AnnotatedKind {
  readonly apiVersion: string;
  readonly lastApplied: LastApplied;
}

/**
 * The fields client-side apply last set and nobody changed since: its manager may take them over
 * from whoever owns them. Undefined when the object has no such record in the request's version.
 */
export function allowedConflicts(
  kind: AnnotatedKind,
  { live, type }: { readonly live: ApiObject; readonly type: ValueType },
): FieldSet | undefined {
  const recorded = live.metadata.annotations?.[kind.lastApplied.annotation] ?? '';
  if (recorded === '') return undefined;
  try {
    const last = parseJson(recorded);
    if (!isObject(last) || last['apiVersion'] !== kind.apiVersion) return undefined;
    validateTyped(type, last, { allowDuplicates: false });
    const { modified, added, removed } = compare(type, last, live);
    const named = toFieldSet(type, last);
    return difference(difference(difference(named, modified), added), removed);
  } catch (error) {
    if (error instanceof TypedError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Keeps client-side apply's record, where an object has one, in step with what was applied. */
export function refreshLastApplied(
  kind: AnnotatedKind,
  { object, patch }: { readonly object: ApiObject; readonly patch: JsonObject },
): void {
  const name = kind.lastApplied.annotation;
  const { annotations } = object.metadata;
  if ((annotations?.[name] ?? '') === '') return;
  const recorded = { ...annotations, [name]: recordOf(patch, name) };
  if (sizeOf(recorded) > annotationsBytesMax) delete recorded[name];
  object.metadata.annotations = recorded;
}

function sizeOf(annotations: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  return bytes;
}

/** The body without the record itself, as kubectl writes it: one line, with sorted members. */
function recordOf(patch: JsonObject, annotation: string): string {
  const metadata = isObject(patch['metadata']) ? patch['metadata'] : {};
  const { [annotation]: _, ...annotations } = isObject(metadata['annotations'])
    ? metadata['annotations']
    : {};
  const { annotations: __, ...rest } = metadata;
  const bare = Object.keys(annotations).length === 0 ? rest : { ...rest, annotations };
  return `${goEscaped(sortedJson({ ...patch, metadata: bare }))}\n`;
}

function sortedJson(value: JsonValue): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const names = Object.keys(value).filter((name) => value[name] !== undefined);
  const members = names
    .sort(compareText)
    .map((name) => `${JSON.stringify(name)}:${sortedJson(value[name]!)}`);
  return `{${members.join(',')}}`;
}
