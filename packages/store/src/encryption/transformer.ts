/** Turns values into what the store holds, and back; `context` is the value's key, which it is bound to. */
export interface Transformer {
  seal(value: Buffer, context: string): Buffer;
  /** Throws when the value is not this transformer's, or was changed. */
  open(stored: Buffer, context: string): Opened;
}

export interface Opened {
  readonly value: Buffer;
  /** It would be stored otherwise now: the first provider, or its first key, is another one. */
  readonly isStale: boolean;
}

/** A transformer, and what the values that it sealed begin with. */
export interface Prefixed {
  readonly prefix: string;
  readonly transformer: Transformer;
}

/** Hears of each transformation, for metrics. */
export type ObserveTransformation = (transformation: {
  readonly type: 'from_storage' | 'to_storage';
  /** `identity` for a value read that is as it is, `unknown` where none fits. */
  readonly prefix: string;
  readonly durationMs: number;
  readonly failed: boolean;
}) => void;

/**
 * Seals with the first of the list, opens with all that fit the value's prefix, in their order. An
 * empty prefix fits everything, and is passed over where it fails. Fails with `noMatch` where none
 * fits, in upstream's words.
 */
export function prefixTransformer(
  list: readonly Prefixed[],
  options: { readonly noMatch: string; readonly observed?: Observed },
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
      return prefix.length === 0 ? sealed : Buffer.concat([prefix, sealed]);
    },
    open(stored, context) {
      const problems: string[] = [];
      for (const [index, { prefix, transformer }] of list.entries()) {
        const begin = prefixes[index] as Buffer;
        if (!stored.subarray(0, begin.length).equals(begin)) continue;
        const shown = prefix === '' ? 'identity' : prefix;
        const run = () => transformer.open(stored.subarray(begin.length), context);
        try {
          const quiet = prefix === '' ? undefined : observed;
          const opened = measured({ observed: quiet, type: 'from_storage', prefix: shown }, run);
          if (prefix === '') tellRead(observed, { prefix: shown, failed: false });
          return index === 0 ? opened : { ...opened, isStale: true };
        } catch (error) {
          if (prefix !== '') problems.push(error instanceof Error ? error.message : String(error));
        }
      }
      if (problems.length > 0) throw new Error(aggregate(problems));
      tellRead(observed, { prefix: 'unknown', failed: true });
      throw new Error(noMatch);
    },
  };
}

/** Who is told of transformations, and the monotonic clock they are timed by. */
export interface Observed {
  readonly observe: ObserveTransformation;
  readonly now: () => number;
}

function tellRead(
  observed: Observed | undefined,
  { prefix, failed }: { readonly prefix: string; readonly failed: boolean },
): void {
  observed?.observe({ type: 'from_storage', prefix, durationMs: 0, failed });
}

function measured<T>(
  as: {
    readonly observed: Observed | undefined;
    readonly type: 'from_storage' | 'to_storage';
    readonly prefix: string;
  },
  run: () => T,
): T {
  const { observed, type, prefix } = as;
  if (observed === undefined) return run();
  const startMs = observed.now();
  let failed = true;
  try {
    const result = run();
    failed = false;
    return result;
  } finally {
    observed.observe({ type, prefix, durationMs: observed.now() - startMs, failed });
  }
}

function aggregate(problems: readonly string[]): string {
  const unique = [...new Set(problems)];
  return unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
}
