import type { Watcher } from './watcher.ts';
import type { WindowChange } from './window.ts';

/** The live watchers of one namespace, one object, one name, or of everything. */
export interface Circle {
  /** Those without a filter, by encoding: all of a group are sent the very same buffer. */
  readonly groups: Map<string, Set<Watcher>>;
  readonly filtered: Set<Watcher>;
  /** What the flush under way has for this circle. */
  batch: WindowChange[];
}

/**
 * Finds the live watchers a change concerns in a few look-ups, however many there are: ten thousand
 * watchers of single objects cost nothing when another object changes.
 *
 * Worked example: a change of `default/web` looks into everyone, byNamespace `default`,
 * byKey `default/web` and byName `web` (a watch of that name in all namespaces).
 */
export class Audience {
  readonly #everyone: Circle = makeCircle();
  readonly #byNamespace = new Map<string, Circle>();
  readonly #byKey = new Map<string, Circle>();
  readonly #byName = new Map<string, Circle>();

  add(watcher: Watcher): void {
    const { map, key } = this.#place(watcher);
    let circle = map?.get(key) ?? (map === undefined ? this.#everyone : undefined);
    if (circle === undefined) {
      circle = makeCircle();
      map?.set(key, circle);
    }
    const { encoder, filter } = watcher.spec;
    if (filter !== undefined) {
      circle.filtered.add(watcher);
      return;
    }
    const group = circle.groups.get(encoder.key);
    if (group === undefined) circle.groups.set(encoder.key, new Set([watcher]));
    else group.add(watcher);
  }

  /** Removes a watcher; harmless when it is not there. */
  remove(watcher: Watcher): void {
    const { map, key } = this.#place(watcher);
    const circle = map === undefined ? this.#everyone : map.get(key);
    if (circle === undefined) return;
    circle.filtered.delete(watcher);
    const group = circle.groups.get(watcher.spec.encoder.key);
    group?.delete(watcher);
    if (group?.size === 0) circle.groups.delete(watcher.spec.encoder.key);
    if (circle.groups.size === 0 && circle.filtered.size === 0) map?.delete(key);
  }

  /** Shares changes out over the circles they concern; returns those circles. */
  gather(changes: readonly WindowChange[]): readonly Circle[] {
    const touched: Circle[] = [];
    const give = (circle: Circle | undefined, change: WindowChange) => {
      if (circle === undefined) return;
      if (circle.batch.length === 0) touched.push(circle);
      circle.batch.push(change);
    };
    for (const change of changes) {
      const entry = change.current ?? change.previous;
      if (entry === undefined) continue;
      const { index } = entry;
      give(this.#everyone, change);
      if (this.#byNamespace.size > 0) give(this.#byNamespace.get(index.namespace), change);
      if (this.#byKey.size > 0) give(this.#byKey.get(change.key), change);
      if (this.#byName.size > 0) give(this.#byName.get(index.name), change);
    }
    return touched;
  }

  #place({ spec }: Watcher): { map: Map<string, Circle> | undefined; key: string } {
    const { namespace, name } = spec;
    if (name === undefined) {
      return { map: namespace === '' ? undefined : this.#byNamespace, key: namespace };
    }
    if (namespace === '') return { map: this.#byName, key: name };
    return { map: this.#byKey, key: `${namespace}/${name}` };
  }
}

function makeCircle(): Circle {
  return { groups: new Map(), filtered: new Set(), batch: [] };
}
