import { aggregateText, andThen, errorText, type MaybePromise } from '@wheelhouse/machinery';
import { CallError, statusName } from '../etcd/errors.ts';

/**
 * Encrypts values for the store and decrypts them. A context is a text to which the ciphertext is
 * bound: the value's key. Returns a promise only if a KMS plugin must be called, or if the work on
 * a large value takes several turns of the event loop.
 */
export interface Transformer {
  seal(value: Buffer, context: string): MaybePromise<Buffer>;
  /**
   * Throws or rejects if the value was changed or is not from this transformer.
   * @param contexts the context that `seal` gets; then others, in which a value is stale
   */
  open(stored: Buffer, contexts: readonly string[]): MaybePromise<Opened>;
}

/** A transformer whose keys are available. */
export interface Cipher extends Transformer {
  seal(value: Buffer, context: string): Buffer;
  open(stored: Buffer, contexts: readonly string[]): Opened;
}

/** A decrypted value. */
export interface Opened {
  readonly value: Buffer;
  /** Whether another provider, key, or context would encrypt the value now. */
  readonly isStale: boolean;
}

/** A transformer and the prefix of its values. */
export interface Prefixed {
  readonly prefix: string;
  readonly transformer: Transformer;
}

/** Called for each transformation, for metrics. */
type ObserveTransformation = (transformation: {
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
  options: { readonly noMatch: string; readonly observer?: TransformationObserver },
): Transformer {
  const prefixes = list.map(({ prefix }) => Buffer.from(prefix));
  const { noMatch, observer } = options;
  return {
    seal(value, context) {
      const [first] = list;
      const [prefix] = prefixes;
      if (first === undefined || prefix === undefined) throw new Error(noMatch);
      const run = () => first.transformer.seal(value, context);
      const sealed = measure({ observer, type: 'to_storage', prefix: first.prefix }, run);
      const withPrefix = (ciphertext: Buffer) =>
        prefix.length === 0 ? ciphertext : Buffer.concat([prefix, ciphertext]);
      return andThen(sealed, withPrefix);
    },
    open: (stored, contexts) =>
      openWith({ list, prefixes, noMatch, observer, stored, contexts, problems: [] }, 0),
  };
}

interface Opening {
  readonly list: readonly Prefixed[];
  readonly prefixes: readonly Buffer[];
  readonly noMatch: string;
  readonly observer: TransformationObserver | undefined;
  readonly stored: Buffer;
  readonly contexts: readonly string[];
  readonly problems: string[];
}

/** Decrypts with the transformer at `index` or the first one after it that succeeds. */
function openWith(opening: Opening, index: number): MaybePromise<Opened> {
  const { list, prefixes, observer, stored, contexts, problems } = opening;
  const candidate = list[index];
  const begin = prefixes[index];
  if (candidate === undefined || begin === undefined) throw failureOf(opening);
  if (!stored.subarray(0, begin.length).equals(begin)) return openWith(opening, index + 1);
  const { prefix, transformer } = candidate;
  const found = (opened: Opened): Opened => {
    if (prefix === '') countRead(observer, { prefix: 'identity', status: 'OK' });
    return index === 0 ? opened : { ...opened, isStale: true };
  };
  const next = (error: unknown): MaybePromise<Opened> => {
    if (prefix !== '') problems.push(errorText(error));
    return openWith(opening, index + 1);
  };
  const run = () => transformer.open(stored.subarray(begin.length), contexts);
  const openObserver = prefix === '' ? undefined : observer;
  let opened: MaybePromise<Opened>;
  try {
    opened = measure({ observer: openObserver, type: 'from_storage', prefix }, run);
  } catch (error) {
    return next(error);
  }
  return opened instanceof Promise ? opened.then(found, next) : found(opened);
}

function failureOf({ problems, observer, noMatch }: Opening): Error {
  if (problems.length > 0) return new Error(aggregateText(problems));
  countRead(observer, { prefix: 'unknown', status: nonGrpcStatus });
  return new Error(noMatch);
}

function countRead(
  observer: TransformationObserver | undefined,
  { prefix, status }: { readonly prefix: string; readonly status: string },
): void {
  observer?.observe({ type: 'from_storage', prefix, durationMs: 0, status });
}

function measure<T>(
  as: {
    readonly observer: TransformationObserver | undefined;
    readonly type: 'from_storage' | 'to_storage';
    readonly prefix: string;
  },
  run: () => MaybePromise<T>,
): MaybePromise<T> {
  const { observer, type, prefix } = as;
  if (observer === undefined) return run();
  const startMs = observer.now();
  const done = (status: string) =>
    observer.observe({ type, prefix, durationMs: observer.now() - startMs, status });
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

const nonGrpcStatus = 'unknown-non-grpc';

/** Returns the name of the gRPC status of a failed call, or of a failure that a call caused. */
export function statusOfFailure(error: unknown): string {
  const call = error instanceof Error && error.cause instanceof CallError ? error.cause : error;
  return call instanceof CallError ? statusName(call.code) : nonGrpcStatus;
}
