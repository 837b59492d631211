import { aggregateText, errorText, type MaybePromise } from '@wheelhouse/machinery';
import { CallError, statusName } from '../etcd/errors.ts';

/**
 * Encrypts values for the store and decrypts them. `context` is the value's key, to which the
 * ciphertext is bound. Returns a promise only if another process must decrypt a key.
 */
export interface Transformer {
  seal(value: Buffer, context: string): MaybePromise<Buffer>;
  /** Throws or rejects if the value was changed or is not from this transformer. */
  open(stored: Buffer, context: string): MaybePromise<Opened>;
}

/** A transformer whose keys are available. */
export interface Cipher extends Transformer {
  seal(value: Buffer, context: string): Buffer;
  open(stored: Buffer, context: string): Opened;
}

export interface Opened {
  readonly value: Buffer;
  /** Whether the value would be encrypted differently now: by another provider or key. */
  readonly isStale: boolean;
}

/** A transformer and the prefix of its values. */
export interface Prefixed {
  readonly prefix: string;
  readonly transformer: Transformer;
}

/** Called for each transformation, for metrics. */
export type ObserveTransformation = (transformation: {
  readonly type: 'from_storage' | 'to_storage';
  /** `identity` for an unencrypted value that was read, `unknown` if no prefix matches. */
  readonly prefix: string;
  readonly durationMs: number;
  /** `OK`, the name of a gRPC status, or `unknown-non-grpc`. */
  readonly status: string;
}) => void;

/** The observer of transformations, and the monotonic clock that times them. */
export interface TransformationObserver {
  readonly observe: ObserveTransformation;
  readonly now: () => number;
}

/**
 * Encrypts with the first transformer; decrypts with those whose prefix matches, in order. An empty
 * prefix matches everything and is skipped if it fails. Fails with `noMatch` if none matches.
 */
export function prefixTransformer(
  list: readonly Prefixed[],
  options: { readonly noMatch: string; readonly observed?: TransformationObserver },
): Transformer {
  const prefixes = list.map(({ prefix }) => Buffer.from(prefix));
  const { noMatch, observed } = options;
  return {
    seal(value, context) {
      const [first] = list;
      const [prefix] = prefixes;
      if (first === undefined || prefix === undefined) throw new Error(noMatch);
      const run = () => first.transformer.seal(value, context);
      const sealed = measured({ observed, type: 'to_storage', prefix: first.prefix }, run);
      const whole = (made: Buffer) => (prefix.length === 0 ? made : Buffer.concat([prefix, made]));
      return sealed instanceof Promise ? sealed.then(whole) : whole(sealed);
    },
    open: (stored, context) =>
      openWith({ list, prefixes, noMatch, observed, stored, context, problems: [] }, 0),
  };
}

interface Opening {
  readonly list: readonly Prefixed[];
  readonly prefixes: readonly Buffer[];
  readonly noMatch: string;
  readonly observed: TransformationObserver | undefined;
  readonly stored: Buffer;
  readonly context: string;
  readonly problems: string[];
}

/** Decrypts with the transformer at `index` or the first one after it that succeeds. */
function openWith(opening: Opening, index: number): MaybePromise<Opened> {
  const { list, prefixes, observed, stored, context, problems } = opening;
  const one = list[index];
  const begin = prefixes[index];
  if (one === undefined || begin === undefined) throw failureOf(opening);
  if (!stored.subarray(0, begin.length).equals(begin)) return openWith(opening, index + 1);
  const { prefix, transformer } = one;
  const found = (opened: Opened): Opened => {
    if (prefix === '') countRead(observed, { prefix: 'identity', status: 'OK' });
    return index === 0 ? opened : { ...opened, isStale: true };
  };
  const next = (error: unknown): MaybePromise<Opened> => {
    if (prefix !== '') problems.push(errorText(error));
    return openWith(opening, index + 1);
  };
  const run = () => transformer.open(stored.subarray(begin.length), context);
  const quiet = prefix === '' ? undefined : observed;
  let opened: MaybePromise<Opened>;
  try {
    opened = measured({ observed: quiet, type: 'from_storage', prefix }, run);
  } catch (error) {
    return next(error);
  }
  return opened instanceof Promise ? opened.then(found, next) : found(opened);
}

function failureOf({ problems, observed, noMatch }: Opening): Error {
  if (problems.length > 0) return new Error(aggregateText(problems));
  countRead(observed, { prefix: 'unknown', status: unnamedStatus });
  return new Error(noMatch);
}

function countRead(
  observed: TransformationObserver | undefined,
  { prefix, status }: { readonly prefix: string; readonly status: string },
): void {
  observed?.observe({ type: 'from_storage', prefix, durationMs: 0, status });
}

function measured<T>(
  as: {
    readonly observed: TransformationObserver | undefined;
    readonly type: 'from_storage' | 'to_storage';
    readonly prefix: string;
  },
  run: () => MaybePromise<T>,
): MaybePromise<T> {
  const { observed, type, prefix } = as;
  if (observed === undefined) return run();
  const startMs = observed.now();
  const done = (status: string) =>
    observed.observe({ type, prefix, durationMs: observed.now() - startMs, status });
  const failed = (error: unknown): never => {
    done(statusOfFailure(error));
    throw error;
  };
  let result: MaybePromise<T>;
  try {
    result = run();
  } catch (error) {
    return failed(error);
  }
  if (!(result instanceof Promise)) {
    done('OK');
    return result;
  }
  return result.then((value) => {
    done('OK');
    return value;
  }, failed);
}

const unnamedStatus = 'unknown-non-grpc';

/** The name of the gRPC status of a failed call, or of the cause of a failure. */
export function statusOfFailure(error: unknown): string {
  const call = error instanceof Error && error.cause instanceof CallError ? error.cause : error;
  return call instanceof CallError ? statusName(call.code) : unnamedStatus;
}
