import type { JsonValue } from '@wheelhouse/machinery';

/**
 * How many objects and lists may stand inside each other where a walker follows them. Deeper input
 * is refused: a walker recurses, and the stack must hold on every input.
 */
export const maxDepth = 1000;

/** Thrown for input that nests too deeply, or that a typed decoder cannot take; becomes a 400. */
export class DecodeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DecodeError';
  }
}

/** What the decoder says of input nested deeper than `maxDepth`. */
export const depthMessage = 'exceeded max depth';

/** Whether a value nests deeper than `limit` levels; uses no stack of its own. */
export function exceedsDepth(value: JsonValue | undefined, limit: number = maxDepth): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const next: unknown[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      if (depth >= limit) return true;
      for (const child of Object.values(one)) {
        if (typeof child === 'object' && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}
