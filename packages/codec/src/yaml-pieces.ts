import { appendAll, itemAt } from '@wheelhouse/machinery';
import type { CST } from 'yaml';

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;

/** The rest of a collection that was cut. */
export interface Rest {
  /** The token of the collection, which keeps its first items. */
  readonly of: CST.Token;
  /** A collection of the same type with the other items. */
  readonly token: Collection;
}

/** Number of tokens in one piece. The library composes them in about a millisecond. */
const tokensPerPiece = 1000;

/**
 * Cuts the syntax tree of a document into pieces, which the library can compose one by one
 * (TRUST-2): it composes the whole tree of a document in one pass. A cut removes the items that
 * follow it from each collection around it.
 */
export class TreeCutter {
  /** Rests of collections that were cut, the first in the document last. */
  readonly #rests: Rest[] = [];
  #left = tokensPerPiece;

  /** Cuts the tree behind its first tokens. */
  cut(token: CST.Token | undefined): void {
    if (isCollection(token)) this.#cutAs(token, token);
  }

  /** Removes the next rest, in the order of the document, and cuts it behind its first tokens. */
  next(): Rest | undefined {
    const rest = this.#rests.pop();
    if (rest !== undefined) this.#cutAs(rest.token, rest.of);
    return rest;
  }

  #cutAs(token: Collection, of: CST.Token): void {
    const found: Rest[] = [];
    this.#cut(token, of, found);
    // The innermost rest comes first in the document.
    appendAll(this.#rests, found.reverse());
  }

  /** Whether pieces of enough tokens were cut to pause. If so, restarts the count. */
  get isOver(): boolean {
    if (this.#left > 0) return false;
    this.#left = tokensPerPiece;
    return true;
  }

  /** @param of the token that keeps the first items */
  #cut(token: Collection, of: CST.Token, found: Rest[]): void {
    for (const [index, { start, key, sep, value }] of token.items.entries()) {
      if (this.#left <= 0 && index > 0 && mayCut(token, index)) {
        found.push({ of, token: restOf(token, index) });
        token.items.length = index;
        if (isFlow(token)) token.end = [endOf(token)];
        return;
      }
      this.#left -= 1 + start.length + (sep?.length ?? 0);
      if (isCollection(key)) this.#cut(key, key, found);
      if (isCollection(value)) this.#cut(value, value, found);
    }
  }
}

function isCollection(token: CST.Token | null | undefined): token is Collection {
  return token?.type === 'block-map' || token?.type === 'block-seq' || isFlow(token);
}

const isFlow = (token: CST.Token | null | undefined): token is CST.FlowCollection =>
  token?.type === 'flow-collection';

/** Whether the library reports the same errors if the items from this one on form a collection. */
function mayCut(token: Collection, index: number): boolean {
  if (!isFlow(token)) return true;
  const [before, item] = token.items.slice(index - 1, index + 1);
  const isEmpty = before?.key == null && before?.sep === undefined && before?.value == null;
  return !isEmpty && item?.start[0]?.type === 'comma';
}

function restOf(token: Collection, index: number): Collection {
  const items: CST.CollectionItem[] = token.items.slice(index);
  const { start, key, sep, value } = itemAt(items, 0);
  const offset = (start[0] ?? key ?? sep?.[0] ?? value)?.offset ?? token.offset;
  // The comma before the first item.
  if (isFlow(token)) items[0] = { ...items[0], start: start.slice(1) };
  return { ...token, offset, items } as Collection;
}

/** The bracket or brace that closes a flow collection. */
function endOf({ start, offset, indent }: CST.FlowCollection): CST.SourceToken {
  return start.source === '{'
    ? { type: 'flow-map-end', offset, indent, source: '}' }
    : { type: 'flow-seq-end', offset, indent, source: ']' };
}
