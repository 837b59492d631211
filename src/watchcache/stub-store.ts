import {
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type WatchRequest,
} from '../storage/contract.ts';
// throwaway until memory store exists
export function createMemoryStore(): Store {
  const log: StoreEvent[] = [];
  let compacted = 0;
  const watches = new Set<{
    request: WatchRequest;
    progress: number;
    waiters: { rev: number; go: () => void }[];
  }>();
  const stateAt = (rev: number) => {
    const map = new Map<string, StoredRecord>();
    for (const e of log) {
      if (e.revision > rev) break;
      if (e.type === 'put')
        map.set(e.key, {
          key: e.key,
          value: e.value,
          createRevision: e.createRevision,
          modRevision: e.revision,
        });
      else map.delete(e.key);
    }
    return map;
  };
  const push = (e: StoreEvent) => {
    log.push(e);
    for (const w of watches) {
      w.progress = e.revision;
      if (e.key.startsWith(w.request.prefix)) w.request.onEvents([e]);
      for (const x of w.waiters.splice(0))
        if (x.rev <= e.revision) x.go();
        else w.waiters.push(x);
    }
  };
  const at = (rev?: number) => {
    if (rev !== undefined && rev < compacted)
      throw new StoreError({ code: 'compacted', message: 'compacted', revision: compacted });
    if (rev !== undefined && rev > log.length)
      throw new StoreError({ code: 'future-revision', message: 'future', revision: log.length });
    return stateAt(rev ?? log.length);
  };
  return {
    currentRevision: () => log.length,
    compactRevision: () => compacted,
    get: (key, rev) => at(rev).get(key),
    async range({ prefix, after, limit, revision }) {
      const all = [...at(revision).values()]
        .filter((r) => r.key.startsWith(prefix) && (after === undefined || r.key > after))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const records = all.slice(0, limit ?? all.length);
      return { records, revision: revision ?? log.length, more: records.length < all.length };
    },
    async put({ key, value, expect, hint }) {
      const cur = stateAt(log.length).get(key);
      if ((cur?.modRevision ?? 0) !== expect) return { ok: false, current: cur };
      const revision = log.length + 1;
      push({
        type: 'put',
        key,
        value,
        createRevision: cur?.createRevision ?? revision,
        revision,
        hint,
      });
      return { ok: true, revision };
    },
    async delete({ key, expect }) {
      const cur = stateAt(log.length).get(key);
      if ((cur?.modRevision ?? 0) !== expect) return { ok: false, current: cur };
      push({ type: 'delete', key, revision: log.length + 1 });
      return { ok: true, revision: log.length };
    },
    async watch(request) {
      if (request.after < compacted)
        throw new StoreError({ code: 'compacted', message: 'compacted', revision: compacted });
      const w = { request, progress: log.length, waiters: [] as { rev: number; go: () => void }[] };
      const old = log.filter((e) => e.revision > request.after && e.key.startsWith(request.prefix));
      watches.add(w);
      if (old.length > 0) request.onEvents(old);
      return {
        get progress() {
          return w.progress;
        },
        reached: (rev) =>
          rev <= w.progress ? undefined : new Promise<void>((go) => w.waiters.push({ rev, go })),
        close: () => void watches.delete(w),
      };
    },
    async compact(revision) {
      compacted = revision;
    },
    async ping() {},
    async sizeBytes() {
      return 0;
    },
    async backup() {},
    async close() {},
  };
}
