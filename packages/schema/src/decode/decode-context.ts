import {
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  problemText,
} from '@wheelhouse/machinery';
import { FoundPaths } from '../field-paths.ts';
import { cannotConvert, goType } from '../go-wording.ts';
import type { Schema } from '../schema.ts';

/**
 * Maximum nesting depth of objects and lists. Deeper input is rejected, because walkers are
 * recursive and must not overflow the stack.
 */
export const maxDepth = 500;

/** Input that is nested too deeply or that a typed decoder rejects; becomes a 400. */
export class DecodeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DecodeError';
  }
}

/** The message of kube-apiserver for input that is nested too deeply. */
const depthMessage = 'exceeded max depth';

/** Whether a value is nested deeper than `maxDepth` levels. Not recursive. */
export function exceedsDepth(value: JsonValue | undefined): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const next: unknown[] = [];
    for (const parent of level) {
      if (typeof parent !== 'object' || parent === null) continue;
      if (depth >= maxDepth) return true;
      for (const child of Object.values(parent)) {
        if (typeof child === 'object' && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}

/**
 * What kube-apiserver decodes a value from, which affects its messages: the text of a body; the
 * text of a patched document or of YAML, whose members are sorted; or the map that a strategic
 * merge patch results in.
 */
export type DecodeSource = 'text' | 'patched' | 'map';

/**
 * The state of a typed decoder. Errors do not stop the decoder: it reports the first error of a
 * type with a custom decoder, because that ends Go's decoding, or else the first error.
 */
export interface DecodeContext {
  /** The names of the enclosing struct members, as in Go's messages. */
  readonly fields: string[];
  /** The parts of the whole path, as in strict errors. */
  readonly steps: string[];
  /** The name of the enclosing struct. */
  struct: string;
  /** The field that errors name inside a type with a custom decoder. */
  field: string | undefined;
  /** Number of levels that are still allowed below this one. */
  depthLeft: number;
  error: string | undefined;
  /** Whether `error` ends Go's decoding. */
  isFinal: boolean;
  readonly unknown: FoundPaths;
  /** Whether an empty list or map occurs in a field that is always serialized. */
  hasEmpty: boolean;
  /** The empty lists and maps that are omitted. */
  readonly omitted: OmittedMember[];
  /** Whether members are visited in the order of the input, so that errors have that order. */
  readonly inputOrder: boolean;
  readonly source: DecodeSource;
  /** The text of numbers that are placeholders for others. */
  readonly spellings: Spellings | undefined;
}

/** Placeholders of numbers, and the text of those numbers. */
export type Spellings = ReadonlyMap<number, string>;

/** Returns the context of a decoder that starts. */
export function newContext(options: {
  readonly inputOrder: boolean;
  readonly source: DecodeSource;
  readonly spellings?: Spellings | undefined;
}): DecodeContext {
  return {
    fields: [],
    steps: [],
    struct: '',
    field: undefined,
    depthLeft: maxDepth,
    error: undefined,
    isFinal: false,
    unknown: new FoundPaths(),
    hasEmpty: false,
    omitted: [],
    inputOrder: options.inputOrder,
    source: options.source,
    spellings: options.spellings,
  };
}

/** Records an error unless there is one. */
export function fail(context: DecodeContext, message: string): void {
  context.error ??= message;
}

/**
 * Records the first error of a type with a custom decoder, which replaces earlier errors of other
 * types.
 */
export function failFinally(context: DecodeContext, message: string): void {
  if (context.isFinal) return;
  if (context.source !== 'map') {
    context.isFinal = true;
    context.error = message;
  } else fail(context, message);
}

/** Records a value of the wrong JSON type for a type with a custom decoder. */
export function failTypeFinally(
  context: DecodeContext,
  value: JsonValue,
  into: { readonly type: string; readonly what?: string },
): void {
  if (context.isFinal) return;
  if (context.source !== 'map') {
    context.isFinal = true;
    context.error = undefined;
  }
  failType(context, value, into);
}

/**
 * Records a value of the wrong JSON type.
 * @param into.what the description of the value in the message, such as `number 1.5`
 */
export function failType(
  context: DecodeContext,
  value: JsonValue,
  into: { readonly schema?: Schema; readonly type?: string; readonly what?: string },
): void {
  if (context.error !== undefined) return;
  const isMap = context.source === 'map';
  if (isMap && into.type === undefined && into.schema !== undefined) {
    context.error = cannotConvert(value, into.schema);
    return;
  }
  const type = into.type ?? (into.schema === undefined ? 'string' : goType(into.schema));
  const what = into.what ?? goValue(value);
  const field = isMap ? '' : (context.field ?? currentField(context));
  context.error = problemText({ code: 'misfit', what, type, ...(field === '' ? {} : { field }) });
}

/** Describes a number as it was spelled, for an error: `number 1.0`. */
export function numberText({ spellings }: DecodeContext, value: number | bigint): string {
  const spelling = typeof value === 'number' ? spellings?.get(value) : undefined;
  return `number ${spelling ?? value}`;
}

/** Returns the current field as Go's messages name it; empty outside of structs. */
export function currentField({ struct, fields }: DecodeContext): string {
  return struct === '' ? '' : `${struct}.${fields.join('.')}`;
}

/**
 * Enters a level of nesting.
 * @throws DecodeError if it is too deep
 */
export function descend(context: DecodeContext): void {
  if (context.depthLeft === 0) throw new DecodeError(depthMessage);
  context.depthLeft -= 1;
}

/** Records the path of an unknown member. */
export function noteUnknown(context: DecodeContext, name: string): void {
  const { unknown } = context;
  if (unknown.isFull) {
    unknown.omit(1);
    return;
  }
  const parent = context.steps.join('');
  unknown.add(parent === '' ? name : `${parent}.${name}`);
}

/** Enters a member or key. The caller leaves it by popping `steps`. */
export function enterName(context: DecodeContext, name: string): void {
  context.steps.push(context.steps.length === 0 ? name : `.${name}`);
}

/**
 * Empty lists and maps that a decoder omits because their members are `omitempty`. kube-apiserver
 * also neither shows nor stores them, but its rules see them: a member that must not be set must
 * not be empty either.
 */

/** An omitted member. */
interface OmittedMember {
  /** The parts of the path of its object, as in strict errors: `spec`, `.containers`, `[0]`. */
  readonly steps: readonly string[];
  readonly name: string;
  readonly isList: boolean;
}

/** The number of members of one object that are kept, which bounds memory. */
const rememberedMax = 1000;

const omittedIn = new WeakMap<JsonObject, readonly OmittedMember[]>();

/** Adds an omitted member to `found`, up to a maximum. */
export function noteOmitted(
  found: OmittedMember[],
  member: { readonly steps: readonly string[]; readonly name: string; readonly value: JsonValue },
): void {
  if (found.length >= rememberedMax) return;
  const { steps, name, value } = member;
  found.push({ steps: [...steps], name, isList: Array.isArray(value) });
}

/** Remembers the members that were omitted from a decoded object. */
export function rememberOmitted(object: JsonObject, found: readonly OmittedMember[]): void {
  if (found.length > 0) omittedIn.set(object, found);
}

/** Remembers the members that were omitted from an object for its copy, too. */
export function copyOmitted(object: JsonObject, copy: JsonObject): void {
  const found = omittedIn.get(object);
  if (found !== undefined) omittedIn.set(copy, found);
}

/**
 * Adds the empty lists and maps that the decoder of an object omitted, in place, so that rules see
 * them. Members that have a value since are not changed.
 */
export function restoreOmitted(object: JsonObject): void {
  for (const { steps, name, isList } of omittedIn.get(object) ?? []) {
    const holder = holderAt(object, steps);
    if (holder !== undefined && holder[name] === undefined) holder[name] = isList ? [] : {};
  }
}

/** Removes the members that `restoreOmitted` added and that are still empty. */
export function removeOmitted(object: JsonObject): void {
  for (const { steps, name } of omittedIn.get(object) ?? []) {
    const holder = holderAt(object, steps);
    const value = holder?.[name];
    if (holder !== undefined && value !== undefined && isEmptyCollection(value)) {
      delete holder[name];
    }
  }
}

/** Whether an empty list or map was omitted from the object at the given place. */
export function isOmittedEmpty(
  object: JsonObject,
  place: { readonly parent: string; readonly name: string },
): boolean {
  const found = omittedIn.get(object) ?? [];
  return found.some(({ steps, name }) => name === place.name && steps.join('') === place.parent);
}

function holderAt(object: JsonObject, steps: readonly string[]): JsonObject | undefined {
  let at: JsonValue | undefined = object;
  for (const [index, step] of steps.entries()) {
    if (Array.isArray(at)) at = at[Number(step.slice(1, -1))];
    else if (isObject(at)) at = member(at, index === 0 ? step : step.slice(1));
    else return undefined;
  }
  return isObject(at) ? at : undefined;
}

/** Whether a value is null, an empty list, or an object without members. */
export function isEmptyCollection(value: JsonValue): boolean {
  if (value === null || Array.isArray(value)) return value === null || value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
