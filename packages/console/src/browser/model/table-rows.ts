import type { TableRow } from './table.ts';

/**
 * The rows of a list that is read in pages while its changes are watched. All pages show one moment,
 * the changes since then reach further than the pages read so far; those behind the last page's end
 * wait for their page:
 *
 *     page 1: a, b (more to come)        rows a b        behind: -
 *     ADDED c, DELETED d, MODIFIED a     rows a' b       behind: c, no d
 *     page 2: d, e (the last)            rows a' b c e   behind: -
 */
export class TableRows {
  readonly #rows = new Map<string, TableRow>();
  /** What has become of objects behind the end; undefined: deleted. */
  readonly #behind = new Map<string, TableRow | undefined>();
  /** The key up to which pages have been read; undefined: to the end of the list. */
  #end: string | undefined = '';
  #sorted: readonly TableRow[] | undefined;

  /** Rows in the server's order: by namespace and name. */
  get sorted(): readonly TableRow[] {
    this.#sorted ??= [...this.#rows.values()].sort(byKey);
    return this.#sorted;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Adds a page of the list, the next after those before. */
  addPage(page: readonly TableRow[], place: 'last' | 'more to come'): void {
    this.#sorted = undefined;
    this.#end = place === 'last' ? undefined : (page.at(-1)?.key ?? this.#end);
    for (const row of page) this.#rows.set(row.key, row);
    for (const [key, row] of this.#behind) {
      if (!this.#isRead(key)) continue;
      this.#behind.delete(key);
      if (row === undefined) this.#rows.delete(key);
      else this.#rows.set(key, row);
    }
  }

  /** Takes a change in; false when it is about an object whose page has not been read. */
  change(type: 'ADDED' | 'MODIFIED' | 'DELETED', row: TableRow): boolean {
    const { key } = row;
    if (!this.#isRead(key)) {
      this.#behind.set(key, type === 'DELETED' ? undefined : row);
      return false;
    }
    if (type === 'DELETED') this.#rows.delete(key);
    else this.#rows.set(key, row);
    this.#sorted = undefined;
    return true;
  }

  #isRead(key: string): boolean {
    return this.#end === undefined || key <= this.#end;
  }
}

function byKey(one: TableRow, other: TableRow): number {
  return one.key < other.key ? -1 : 1;
}
