import type {
  DeleteRequest,
  PutRequest,
  RangeRequest,
  RangeResult,
  Revision,
  StoredRecord,
  StoreEvent,
  WriteResult,
} from './contract.ts';

/**
 * A model of the store contract: a list of all writes, from which it computes every result.
 * Property tests compare the real stores with it.
 */
export class StoreModel {
  readonly #events: StoreEvent[] = [];

  get revision(): Revision {
    return this.#events.length;
  }

  /** Every key present at a revision, in byte order. */
  #recordsAt(revision: Revision): StoredRecord[] {
    const present = new Map<string, StoredRecord>();
    for (const event of this.#events.slice(0, revision)) {
      if (event.type === 'delete') present.delete(event.key);
      else {
        const { key, value, createRevision } = event;
        present.set(key, { key, value, createRevision, modRevision: event.revision });
      }
    }
    return [...present.values()].sort((left, right) =>
      Buffer.compare(Buffer.from(left.key), Buffer.from(right.key)),
    );
  }

  get(key: string, at: Revision = this.revision): StoredRecord | undefined {
    return this.#recordsAt(at).find((record) => record.key === key);
  }

  range(request: RangeRequest): RangeResult {
    const { prefix, after, limit = Number.POSITIVE_INFINITY } = request;
    const revision = request.revision ?? this.revision;
    const matching = this.#recordsAt(revision).filter(
      ({ key }) =>
        key.startsWith(prefix) &&
        (after === undefined || Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0),
    );
    return { records: matching.slice(0, limit), revision, more: matching.length > limit };
  }

  put({ key, value, expect }: PutRequest): WriteResult {
    const current = this.get(key);
    if ((current?.modRevision ?? 0) !== expect) return { ok: false, current };
    const revision = this.revision + 1;
    const createRevision = current?.createRevision ?? revision;
    this.#events.push({ type: 'put', key, value, createRevision, revision });
    return { ok: true, revision };
  }

  delete({ key, expect }: DeleteRequest): WriteResult {
    const current = this.get(key);
    if (current === undefined || current.modRevision !== expect) return { ok: false, current };
    this.#events.push({ type: 'delete', key, revision: this.revision + 1 });
    return { ok: true, revision: this.revision };
  }

  events(options: { readonly prefix: string; readonly after: Revision }): StoreEvent[] {
    return this.#events
      .slice(options.after)
      .filter((event) => event.key.startsWith(options.prefix));
  }
}
