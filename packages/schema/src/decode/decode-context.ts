import { goValue, type JsonValue, problemText } from '@wheelhouse/machinery';
import { FoundPaths } from '../found-paths.ts';
import { cannotConvert, goType } from '../go-wording.ts';
import type { Schema } from '../schema.ts';
import { DecodeError, depthMessage, maxDepth } from './depth.ts';

/**
 * What upstream decodes the value from, which shows in its messages: the text of a body, the text
 * that it makes of a patched document or of YAML, members sorted, or the map that a strategic merge
 * patch was applied to.
 */
export type DecodeSource = 'text' | 'patched' | 'map';

/**
 * What a typed decoder knows about where it stands. `fields` holds the names of the struct members
 * it is inside of, as Go's message has them; `steps` the whole path, as the strict errors have it.
 * Errors do not stop it, and the rest of the value is still looked at. The first error of a type with
 * a decoder of its own counts, since it ends Go's decoding; else the first error of all.
 */
export interface DecodeContext {
  readonly fields: string[];
  readonly steps: string[];
  struct: string;
  /** The field that errors name, inside of what decodes itself: its own. */
  field: string | undefined;
  /** Levels still allowed below this one. */
  depthLeft: number;
  error: string | undefined;
  /** Whether `error` is one that ends Go's decoding. */
  isFinal: boolean;
  readonly unknown: FoundPaths;
  /** Whether a list or map with nothing in it stands where one is always shown. */
  hasEmpty: boolean;
  /** Follow the members as they stand in the input, so that what is found has that order. */
  readonly inputOrder: boolean;
  readonly source: DecodeSource;
}

export function newContext(options: {
  readonly inputOrder: boolean;
  readonly source: DecodeSource;
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
    inputOrder: options.inputOrder,
    source: options.source,
  };
}

/** Keeps the first error. */
export function fail(context: DecodeContext, message: string): void {
  context.error ??= message;
}

/** Keeps the first error of a type that decodes itself, and forgets what was wrong before it. */
export function failFinally(context: DecodeContext, message: string): void {
  if (context.isFinal) return;
  if (context.source !== 'map') {
    context.isFinal = true;
    context.error = message;
  } else fail(context, message);
}

/** `failType` of a type that decodes itself. */
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

/** A value of the wrong JSON type; `what` overrides how the value is called (`number 1.5`). */
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

/** The field that the decoder is in, by the names of Go's structs; empty outside of fields. */
export function currentField({ struct, fields }: DecodeContext): string {
  return struct === '' ? '' : `${struct}.${fields.join('.')}`;
}

/** Goes one level down; throws when that is too deep. */
export function descend(context: DecodeContext): void {
  if (context.depthLeft === 0) throw new DecodeError(depthMessage);
  context.depthLeft -= 1;
}

/** Notes a member that the type here does not have, by its path as strict errors write it. */
export function noteUnknown(context: DecodeContext, name: string): void {
  const { unknown } = context;
  if (unknown.isFull) {
    unknown.omit(1);
    return;
  }
  const parent = context.steps.join('');
  unknown.add(parent === '' ? name : `${parent}.${name}`);
}

/** Enters a member or key; leave by popping `steps`. */
export function enterName(context: DecodeContext, name: string): void {
  context.steps.push(context.steps.length === 0 ? name : `.${name}`);
}
