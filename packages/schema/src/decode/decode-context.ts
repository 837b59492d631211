import { goValue, type JsonValue, problemText } from '@wheelhouse/machinery';
import { FoundPaths } from '../field-paths.ts';
import { cannotConvert, goType } from '../go-wording.ts';
import type { Schema } from '../schema.ts';

/**
 * Maximum nesting depth of objects and lists. Deeper input is rejected, because walkers are
 * recursive and must not overflow the stack.
 */
export const maxDepth = 1000;

/** Input that is nested too deeply or that a typed decoder rejects; becomes a 400. */
export class DecodeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DecodeError';
  }
}

/** The message for input that is nested deeper than `maxDepth`. */
const depthMessage = 'exceeded max depth';

/** Whether a value is nested deeper than `maxDepth` levels. Not recursive. */
export function exceedsDepth(value: JsonValue | undefined): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      if (depth >= maxDepth) return true;
      for (const child of Object.values(one)) {
        if (typeof child === 'object' && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}

/**
 * The source from which kube-apiserver decodes a value, which affects its messages: the text of a
 * body, the text of a patched document or of YAML with sorted members, or the map that results from
 * a strategic merge patch.
 */
export type DecodeSource = 'text' | 'patched' | 'map';

/**
 * The state of a typed decoder. `fields` holds the names of the enclosing struct members, as in
 * Go's messages; `steps` holds the whole path, as in strict errors. Errors do not stop the decoder.
 * The reported error is the first one of a type with a custom decoder, because that ends Go's
 * decoding; otherwise the first of all.
 */
export interface DecodeContext {
  readonly fields: string[];
  readonly steps: string[];
  struct: string;
  /** The field that errors name; inside a type with a custom decoder, that field. */
  field: string | undefined;
  /** Number of levels that are still allowed below this one. */
  depthLeft: number;
  error: string | undefined;
  /** Whether `error` ends Go's decoding. */
  isFinal: boolean;
  readonly unknown: FoundPaths;
  /** Whether an empty list or map occurs in a field that is always serialized. */
  hasEmpty: boolean;
  /** Visits members in the order of the input, so that errors have that order. */
  readonly inputOrder: boolean;
  readonly source: DecodeSource;
  /** The text of numbers that are placeholders for others. */
  readonly spellings: Spellings | undefined;
}

/** Placeholders of numbers, and the text of those numbers. */
export type Spellings = ReadonlyMap<number, string>;

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

/** `failType` for a type with a custom decoder. */
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
 * Records a value of the wrong JSON type. `what` overrides the description of the value (`number
 * 1.5`).
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

/** Describes a number in errors as it was spelled: `number 1.0`. */
export function numberText({ spellings }: DecodeContext, value: number | bigint): string {
  const spelling = typeof value === 'number' ? spellings?.get(value) : undefined;
  return `number ${spelling ?? value}`;
}

/** The current field by the names of Go's structs; empty outside of fields. */
export function currentField({ struct, fields }: DecodeContext): string {
  return struct === '' ? '' : `${struct}.${fields.join('.')}`;
}

/** Enters a level. Throws if that is too deep. */
export function descend(context: DecodeContext): void {
  if (context.depthLeft === 0) throw new DecodeError(depthMessage);
  context.depthLeft -= 1;
}

/** Records an unknown member by its path in strict errors. */
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
