import type { CallContext } from '../types/functions.ts';

/**
 * Product of the lengths of a text and a part up to which the search of the JavaScript engine,
 * whose worst case is their product, takes about a millisecond.
 */
const engineStepsMax = 1_000_000;

/**
 * Length of a part up to which the engine searches for it in one window of the text after another.
 */
const shortPartMax = 64;

/** Whether the engine's own search takes no longer than a step. */
export const isShortSearch = (text: string, part: string) =>
  part.length <= 1 || text.length * part.length <= engineStepsMax;

/** Characters that one step of a search reads, and the work for which they count. */
const perStep = { characters: 20_000, work: 2_000 };

/** Index of the first occurrence of `part` at or after `from`, in steps; -1 if there is none. */
export function* indexInSteps(
  text: string,
  part: string,
  { from, context }: { readonly from: number; readonly context: CallContext },
): Generator<void, number> {
  if (isShortSearch(text, part)) return text.indexOf(part, from);
  if (part.length <= shortPartMax) {
    const window = Math.floor(engineStepsMax / part.length);
    for (let start = from; start < text.length; start += window) {
      context.work(perStep.work);
      if (context.isStepOver()) yield;
      const at = text.slice(start, start + window + part.length - 1).indexOf(part);
      if (at >= 0) return start + at;
    }
    return -1;
  }
  const at = yield* searchSteps({
    length: text.length - from,
    text: (index) => text.charCodeAt(from + index),
    part: (index) => part.charCodeAt(index),
    partLength: part.length,
    context,
  });
  return at < 0 ? -1 : from + at;
}

/** Index of the last occurrence of `part` that starts at or before `limit`, in steps. */
export function* lastIndexInSteps(
  text: string,
  part: string,
  { limit, context }: { readonly limit: number; readonly context: CallContext },
): Generator<void, number> {
  if (isShortSearch(text, part)) return text.lastIndexOf(part, limit);
  const end = Math.min(text.length, limit + part.length);
  const at = yield* searchSteps({
    length: end,
    text: (index) => text.charCodeAt(end - 1 - index),
    part: (index) => part.charCodeAt(part.length - 1 - index),
    partLength: part.length,
    context,
  });
  return at < 0 ? -1 : end - at - part.length;
}

interface Search {
  /** The characters of the text in the direction of the search. */
  readonly text: (index: number) => number;
  readonly length: number;
  readonly part: (index: number) => number;
  readonly partLength: number;
  readonly context: CallContext;
}

/** The search of Knuth, Morris, and Pratt, which is linear in the lengths of text and part. */
function* searchSteps({ text, length, part, partLength, context }: Search) {
  /** Length of the longest proper prefix of each prefix of the part that is also its suffix. */
  const borders = new Uint32Array(partLength);
  let matched = 0;
  for (let at = 1; at < partLength; at += 1) {
    if (at % perStep.characters === 0) {
      context.work(perStep.work);
      if (context.isStepOver()) yield;
    }
    const character = part(at);
    while (matched > 0 && part(matched) !== character) matched = borders[matched - 1] ?? 0;
    if (part(matched) === character) matched += 1;
    borders[at] = matched;
  }
  matched = 0;
  for (let at = 0; at < length; at += 1) {
    if (at % perStep.characters === 0) {
      context.work(perStep.work);
      if (context.isStepOver()) yield;
    }
    const character = text(at);
    while (matched > 0 && part(matched) !== character) matched = borders[matched - 1] ?? 0;
    if (part(matched) === character) matched += 1;
    if (matched === partLength) return at + 1 - partLength;
  }
  return -1;
}
